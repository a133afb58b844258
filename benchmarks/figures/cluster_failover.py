"""How long a producer waits when the leader of its partition is killed."""

from __future__ import annotations

import time
from typing import ClassVar

from benchmarks.cluster import Cluster, wait_until
from benchmarks.model import Benchmark, Figure
from benchmarks.writer import SteadyWriter

TOPIC = "failover"
KILLS = 20
KILLS_OF_KAFKA = 4
"""Each takes Kafka 10 s and more, and as much again until the killed node is back."""


class Failover(Benchmark[Cluster]):
    """The leader dies; the controller lives."""

    name: ClassVar[str] = "cluster-failover"
    title: ClassVar[str] = "Three nodes: kill -9 of a leader"
    method: ClassVar[str] = (
        "One partition, three replicas. A producer (confluent-kafka, acks=all, idempotent, linger 0, retrying every"
        " 10–100 ms) writes a record every 5 ms. SIGKILL of the leader, a node that is not the active controller; the"
        " longest time without an acknowledgement from then until they flow again. Afterwards the node comes back, and"
        " before the next kill all three are in sync. In the end as many records are in the log as were acknowledged."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("gap_s", "kill -9 of a leader until an acks=all producer goes on", "s", at_most=0.5),
        Figure("gap_s", "the same, worst", "s", at_most=1, statistic="worst"),
    )
    nodes: ClassVar[int] = 3
    discarded_runs: ClassVar[int] = 0
    with_controller: ClassVar[bool] = False

    @classmethod
    def runs_of(cls, peer: str, runs: int) -> int:
        """Twenty kills, of Kafka fewer; a quick run makes do with what was asked for."""
        if runs < 3:
            return runs if peer == "tidelog" else 1
        return KILLS if peer == "tidelog" else KILLS_OF_KAFKA

    def prepare(self, node: Cluster) -> None:
        """The topic."""
        node.create_topic(TOPIC, 1)

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """One kill."""
        victim = self._place_leader(node)
        writer = SteadyWriter(node.bootstrap, TOPIC)
        try:
            wait_until(lambda: writer.acknowledged > 100, "records are acknowledged")
            killed = time.monotonic()
            node.nodes[victim].kill()
            wait_until(lambda: writer.goes_on(killed), "records are acknowledged again")
            gap_s = writer.longest_gap_s(killed)
        finally:
            node.nodes[victim].launch()
            node.wait_in_sync({TOPIC: 1})
            writer.stop()
        return {"gap_s": gap_s}

    def _place_leader(self, cluster: Cluster) -> int:
        """Make a node the leader that is, or is not, the active controller; its id."""
        cluster.wait_in_service()
        cluster.wait_in_sync({TOPIC: 1})
        wait_until(lambda: cluster.controller() > 0, "there is a controller")
        controller = cluster.controller()
        chosen = controller if self.with_controller else next(each for each in cluster.nodes if each != controller)
        cluster.lead(TOPIC, chosen)
        return chosen


class FailoverWithController(Failover):
    """Both die at once."""

    name: ClassVar[str] = "cluster-failover-controller"
    title: ClassVar[str] = "Three nodes: kill -9 of leader and active controller in one"
    method: ClassVar[str] = "As above, with the leader on the node that is the active controller."
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("gap_s", "kill -9 of leader and active controller in one", "s"),
        Figure("gap_s", "the same, worst", "s", at_most=2, statistic="worst"),
    )
    with_controller: ClassVar[bool] = True
