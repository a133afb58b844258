"""Which broker clients are told to take for the controller."""

from __future__ import annotations

from tidelog.events import Request
from tidelog.node.apis import describe_cluster, metadata
from tidelog.node.lifecycle import State
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.machines import Process
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.describe_cluster import DescribeClusterRequest
from tidelog.wire.messages.metadata import MetadataRequest


def test_the_controller_that_is_named_is_among_the_brokers_that_are_listed() -> None:
    """Also by one that serves and has not read yet that it may: librdkafka waits minutes for one it cannot find."""
    cluster = SimulatedCluster(7, brokers=(1, 2, 3), controllers=(11,))
    early, named = set(), set()

    def look(process: Process) -> None:
        node = process.node
        if node.node_id not in cluster.brokers or node.lifecycle.state is not State.RUNNING:
            return
        request = Request(1, 0, ApiKey.METADATA, 12, "c", MetadataRequest(topics=[]))
        answer = metadata._answer(node, request, [], [])
        listed = {one.node_id for one in answer.brokers}
        if node.node_id not in listed:
            early.add(node.node_id)
        assert answer.controller_id in (listed or {-1})
        described = describe_cluster.handle(
            node, Request(1, 0, ApiKey.DESCRIBE_CLUSTER, 2, "c", DescribeClusterRequest())
        )
        assert described.controller_id == answer.controller_id
        named.add(answer.controller_id)

    cluster.world.on_step = look
    cluster.start_all()
    cluster.world.run_for(1_000)
    assert early, "nobody served before it had read that it may: this shows nothing"
    assert {1, 2, 3} <= named
