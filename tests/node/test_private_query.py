"""The private query: what the tools show about replicas comes from here."""

from __future__ import annotations

import json
from typing import Any

from tests.node.support import TOPIC, OneNode
from tests.sim.test_three_nodes import Cluster
from tidelog.errors import ErrorCode
from tidelog.wire.apis import PRIVATE_QUERY, ApiKey
from tidelog.wire.messages.api_versions import ApiVersionsRequest
from tidelog.wire.private_query import TidelogQueryRequest


def ask(cluster: Any, node_id: int, question: str, arguments: str = "{}") -> Any:
    return cluster.ask(node_id, PRIVATE_QUERY, 0, TidelogQueryRequest(question=question, arguments=arguments))


def test_it_is_not_advertised() -> None:
    node = OneNode()
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = node.ask(1, ApiKey.API_VERSIONS, 4, request)
    assert PRIVATE_QUERY not in {one.api_key for one in answer.api_keys}


def test_where_a_replica_stands() -> None:
    node = OneNode()
    node.produce({0: node.batch(b"a", b"b")})
    answer = json.loads(ask(node, 1, "replicas", json.dumps({"topic": TOPIC})).answer)
    first, second = answer["replicas"]
    assert (first["role"], first["log_end_offset"], first["high_watermark"]) == ("leader", 2, 2)
    assert first["epochs"] == [{"epoch": 0, "start_offset": 0}]
    assert second["log_end_offset"] == 0


def test_why_a_follower_is_out() -> None:
    cluster = Cluster(1, nodes=3)
    cluster.start_all()
    cluster.create()
    assert cluster.world.run_until(lambda: cluster.leader() > 0)
    victim = next(one for one in (1, 2, 3) if one != cluster.leader())
    cluster.world.kill(victim)
    assert cluster.world.run_until(lambda: victim not in cluster.isr())
    cluster.produce(b"a")
    leader = json.loads(ask(cluster, cluster.leader(), "replicas").answer)["replicas"]
    followers = {one["node"]: one for one in leader[-1]["followers"]}
    assert followers[victim]["why_not"] == "its broker is fenced"
    other = next(one for one in followers if one != victim)
    assert (followers[other]["in_sync"], followers[other]["lag"], followers[other]["why_not"]) == (True, 0, None)


def test_bad_questions_get_one_clear_line() -> None:
    node = OneNode()
    unknown = ask(node, 1, "replica")
    assert unknown.error_code == ErrorCode.INVALID_REQUEST
    assert "known are image, node, positions, replicas" in unknown.error_message
    assert ask(node, 1, "replicas", "[1]").error_code == ErrorCode.INVALID_REQUEST
    assert ask(node, 1, "replicas", "{").error_code == ErrorCode.INVALID_REQUEST
