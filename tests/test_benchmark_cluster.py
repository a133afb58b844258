"""The benchmarks of three nodes do what they say, on small sizes and without a peer to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import wire_limit
from benchmarks.apart import Failed
from benchmarks.cluster import Cluster
from benchmarks.figures.cluster_failover import TOPIC, Failover, FailoverWithController
from benchmarks.figures.cluster_latency import ClusterLatency
from benchmarks.model import Scale
from benchmarks.writer import SteadyWriter
from tests.support.processes import wait_until

QUICK = Scale(quick=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes."""
    started = Cluster("tidelog", tmp_path_factory.mktemp("cluster"), {})
    try:
        yield started.start()
    finally:
        started.end()


def test_a_failover_kills_the_leader_that_it_names(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic(TOPIC, 1)
    for kind in (Failover, FailoverWithController):
        before = {node_id: node.running.pid for node_id, node in cluster.nodes.items()}
        controller = cluster.controller()
        values = kind(QUICK, "tidelog", tmp_path).run(cluster, 0)
        assert 0 < values["gap_s"] < 60
        (victim,) = [node_id for node_id, node in cluster.nodes.items() if node.running.pid != before[node_id]]
        assert (victim == controller) is kind.with_controller


def wait_led(cluster: Cluster, node_id: int) -> None:
    """Another broker may be asked each time, and hear of it a moment later."""
    wait_until(lambda: cluster.leader("placed") == node_id, 60, f"node {node_id} leads")


def test_leaders_are_placed_where_a_benchmark_wants_them(cluster: Cluster) -> None:
    cluster.create_topic("placed", 1)
    for node_id in (2, 3, 1):
        cluster.lead("placed", node_id)
        wait_led(cluster, node_id)
    assert cluster.controller() in cluster.nodes


def test_a_record_too_many_is_noticed(cluster: Cluster) -> None:
    """The writer's promise, nothing lost and nothing twice, is one that can be broken."""
    cluster.create_topic("judged", 1)
    writer = SteadyWriter(cluster.bootstrap, "judged")
    wait_until(lambda: writer.acknowledged > 10, 60, "records are acknowledged")
    stranger = SteadyWriter(cluster.bootstrap, "judged")
    wait_until(lambda: stranger.acknowledged > 1, 60, "a stranger's, too")
    with pytest.raises(Failed):
        stranger.stop()
    with pytest.raises(Failed):
        writer.stop()


def test_latencies_of_a_moment(cluster: Cluster, tmp_path: Path) -> None:
    bench = ClusterLatency(QUICK, "tidelog", tmp_path)
    bench.prepare(cluster)
    values = bench.run(cluster, 0)
    assert set(values) == {figure.key for figure in ClusterLatency.figures}
    assert 0 < values["ack_p50_ms"] <= values["ack_p99_ms"]
    assert 0 < values["e2e_p50_ms"] <= values["e2e_p99_ms"]


def test_the_limit_of_plain_sockets(tmp_path: Path) -> None:
    assert wire_limit.measure(5, tmp_path) > 0
    assert list(tmp_path.iterdir()) == [], "its files are gone"
