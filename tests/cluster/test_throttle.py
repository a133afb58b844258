"""`tidelog reassign --throttle` on real processes: not faster than it was told, and nothing of it stays behind."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cluster.support import WAIT_S, cluster_of, create_topic, wait_known, wait_until
from tidelog.cli import main
from tidelog.cli.throttling import FOLLOWERS, LEADERS, RATES
from tidelog.client.admin import ResourceType, describe_configs
from tidelog.client.client import Client
from tidelog.verify.cluster import LocalCluster

RATE = 500_000
SIZE = 3_000_000


def throttled(cluster: LocalCluster, topic: str) -> set[str]:
    """Whatever of a throttle is set anywhere, as every broker knows by now."""
    wait_known(cluster)
    with Client(cluster.bootstrap) as client:
        found = describe_configs(client, ResourceType.TOPIC, topic, keys=(LEADERS, FOLLOWERS))
        for node_id in cluster.node_ids:
            found += describe_configs(client, ResourceType.BROKER, str(node_id), keys=RATES)
    return {one.name for one in found if one.source in ("topic", "broker, dynamic")}


def test_a_move_takes_the_time_its_throttle_gives_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of(3, replica_fetch_max_bytes="100000") as cluster:

        def tidelog(*words: str) -> tuple[int, Any]:
            code = main([*words, "--bootstrap", cluster.bootstrap, "--json"])
            return code, json.loads(capsys.readouterr().out)

        create_topic(cluster, "moved", partitions=1, factor=1, min_insync_replicas="1")
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
        for _ in range(SIZE // 10_000):
            producer.produce("moved", value=b"x" * 10_000, partition=0)
        assert producer.flush(WAIT_S) == 0
        wait_until(lambda: cluster.leader("moved", 0) is not None, "moved has a leader")
        leader = cluster.leader("moved", 0)
        target = str(next(one for one in cluster.node_ids if one != leader))

        with monkeypatch.context() as patched:
            # As a broker answers that has not heard yet what was set a moment ago.
            patched.setattr("tidelog.client.admin.describe_configs", lambda *_, **__: [])
            code, _ = tidelog("reassign", "start", "--topic", "moved", "--brokers", "9", "--throttle", str(RATE))
        assert code == 1
        assert throttled(cluster, "moved") == set(), "what is refused leaves no throttle behind"

        begun = time.monotonic()
        code, _ = tidelog("reassign", "start", "--topic", "moved", "--brokers", target, "--throttle", str(RATE))
        assert code == 0
        assert throttled(cluster, "moved") == {LEADERS, FOLLOWERS, *RATES}
        code, said = tidelog("reassign", "verify")
        assert (code, said["throttle_removed"]) == (1, [])
        assert said["under_way"] == [{"topic": "moved", "partition": 0}]
        wait_until(lambda: tidelog("reassign", "verify")[0] == 0, "the move is done")
        # The first second counts as a whole one, and a fetch is not cut in two.
        assert time.monotonic() - begun >= (SIZE - 2 * 100_000) / RATE - 1
        assert throttled(cluster, "moved") == set()

        code, _ = tidelog(
            "reassign", "start", "--topic", "moved", "--brokers", str(leader), "--throttle", "50000000", "--wait"
        )
        assert code == 0
        assert throttled(cluster, "moved") == set()
