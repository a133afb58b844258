"""How long an acknowledgement by three replicas takes, and a record's way through them."""

from __future__ import annotations

from typing import ClassVar

from benchmarks import clients
from benchmarks.cluster import Cluster
from benchmarks.model import Benchmark, Figure

PARTITIONS = 3
RATE = 500


class ClusterLatency(Benchmark[Cluster]):
    """An open loop of acknowledgements, then one record at a time."""

    name: ClassVar[str] = "cluster-latency"
    title: ClassVar[str] = "Three nodes: latency"
    method: ClassVar[str] = (
        "Three partitions, three replicas, acks=all, linger 0. Acknowledgement: 500 records of 100 B a second, whatever"
        " becomes of them (an open loop), for 20 s after 2 s that do not count; from when each was due until its"
        " acknowledgement. Produce to consume: one process writes a record and waits until it has read it back, then"
        " writes the next: 3,000 times after 300 that do not count, one partition."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("ack_p50_ms", "acknowledgement at 500 records/s, RF 3, p50", "ms", ratio_at_most=0.5),
        Figure("ack_p99_ms", "acknowledgement at 500 records/s, RF 3, p99", "ms", ratio_at_most=0.5),
        Figure("e2e_p50_ms", "produce to consume, RF 3, one at a time, p50", "ms", ratio_at_most=0.5),
        Figure("e2e_p99_ms", "produce to consume, RF 3, one at a time, p99", "ms", ratio_at_most=0.5),
    )
    nodes: ClassVar[int] = 3

    def prepare(self, node: Cluster) -> None:
        """The topics."""
        node.create_topic("acknowledged", PARTITIONS)
        node.create_topic("through", 1)

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """Both, one after the other."""
        seconds = self.scale.choose(20, 2)
        acknowledged = clients.call(
            "paced",
            bootstrap=node.bootstrap,
            topic="acknowledged",
            partitions=PARTITIONS,
            records=RATE * seconds,
            warm_up=RATE * seconds // 10,
            rate=RATE,
            size=100,
        )
        through = clients.call(
            "round-trips",
            bootstrap=node.bootstrap,
            topic="through",
            records=self.scale.choose(3_000, 200),
            warm_up=self.scale.choose(300, 20),
        )
        return {
            "ack_p50_ms": acknowledged["p50_ms"],
            "ack_p99_ms": acknowledged["p99_ms"],
            "e2e_p50_ms": through["p50_ms"],
            "e2e_p99_ms": through["p99_ms"],
        }
