"""What two thousand partitions with three replicas each cost."""

from __future__ import annotations

import time
from typing import ClassVar

from benchmarks import clients
from benchmarks.cluster import NODES, Cluster, wait_until
from benchmarks.model import Benchmark, Figure

TOPICS = 20
FEW = 10
RATE = 500


class ClusterPartitions(Benchmark[Cluster]):
    """Twenty topics of a hundred partitions, six thousand replicas."""

    name: ClassVar[str] = "cluster-partitions"
    title: ClassVar[str] = "2,000 partitions with three replicas on three nodes"
    method: ClassVar[str] = (
        "Acknowledgements at 500 records/s (as above, over all partitions of one topic) with 10 partitions in the"
        " cluster; then 20 topics of 100 partitions are made. Once all are in sync and 10 s have passed without a"
        " client, CPU time over 30 s; acknowledgements again, over the hundred partitions of the last topic; then one"
        " node is stopped in order and started: from the start of its process until every partition has three replicas"
        " in sync. A new cluster for each run."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("cpu_percent", "2,000 partitions × RF 3, idle: CPU of a node", "% of a core", at_most=2),
        Figure("ack_growth", "2,000 partitions: acknowledgement p50 against 10 partitions", "times", at_most=2),
        Figure("restart_s", "2,000 partitions: restart of one node to full ISR", "s", at_most=10),
        Figure("resident_mb", "2,000 partitions: memory of a node", "MB"),
        Figure("create_s", "2,000 partitions: made and in sync", "s"),
    )
    nodes: ClassVar[int] = 3
    keeps_node: ClassVar[bool] = False
    discarded_runs: ClassVar[int] = 0

    @classmethod
    def runs_of(cls, peer: str, runs: int) -> int:
        """A run of Kafka takes minutes."""
        return min(runs, 3 if peer == "tidelog" else 1)

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """Few partitions, many partitions, rest, work, restart."""
        cluster = Cluster(self.peer, self.directory / f"run-{number}", self.properties)
        try:
            return self._measure(cluster.start())
        finally:
            cluster.end()

    def _measure(self, cluster: Cluster) -> dict[str, float]:
        cluster.create_topic("few", FEW)
        few_ms = self._acknowledge(cluster, "few", FEW)
        each = self.scale.choose(100, 5)
        topics = {f"many-{number}": each for number in range(TOPICS)}
        began_s = time.perf_counter()
        for name in topics:
            cluster.create_topic(name, each)
        cluster.wait_in_sync(topics)
        create_s = time.perf_counter() - began_s
        time.sleep(self.scale.choose(10, 1))
        watch_s = self.scale.choose(30, 2)
        cpu_s = cluster.cpu_seconds()
        time.sleep(watch_s)
        cpu_percent = (cluster.cpu_seconds() - cpu_s) / watch_s * 100 / NODES
        many_ms = self._acknowledge(cluster, f"many-{TOPICS - 1}", each)
        resident = cluster.resident_bytes()
        return {
            "cpu_percent": cpu_percent,
            "ack_growth": many_ms / few_ms,
            "few_p50_ms": few_ms,
            "many_p50_ms": many_ms,
            "resident_mb": resident / 1_000_000,
            "create_s": create_s,
            "restart_s": self._restart(cluster, topics),
        }

    def _acknowledge(self, cluster: Cluster, topic: str, partitions: int) -> float:
        seconds = self.scale.choose(10, 1)
        answer = clients.call(
            "paced",
            bootstrap=cluster.bootstrap,
            topic=topic,
            partitions=partitions,
            records=RATE * seconds,
            warm_up=RATE * max(1, seconds // 3),
            rate=RATE,
            size=100,
        )
        return float(answer["p50_ms"])

    def _restart(self, cluster: Cluster, topics: dict[str, int]) -> float:
        victim = cluster.nodes[NODES]
        victim.stop(120)
        client = cluster.admin()

        def is_gone() -> bool:
            partitions = client.list_topics(timeout=60).topics["many-0"].partitions.values()
            return all(NODES not in one.isrs for one in partitions)

        wait_until(is_gone, "the stopped node is out of every ISR")
        began_s = time.perf_counter()
        victim.launch()
        cluster.wait_in_sync(topics, client)
        return time.perf_counter() - began_s
