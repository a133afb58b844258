"""How long one record takes from a producer to a consumer."""

from __future__ import annotations

from typing import ClassVar

from benchmarks import administration, clients
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node


class Latency(Benchmark[Node]):
    """One record at a time."""

    name: ClassVar[str] = "latency"
    title: ClassVar[str] = "Produce to consume, one at a time"
    method: ClassVar[str] = (
        "One process writes a record (linger 0, acks=all) and waits until it has read it back, then writes the next:"
        " 5,000 times after 500 that do not count, one partition."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("p50_ms", "produce to consume, one at a time, p50", "ms", ratio_at_most=0.5),
        Figure("p99_ms", "produce to consume, one at a time, p99", "ms", ratio_at_most=1),
    )

    def prepare(self, node: Node) -> None:
        """The topic."""
        administration.create_topic(node, "latency", 1)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """A few thousand records."""
        answer = clients.call(
            "round-trips",
            bootstrap=node.bootstrap,
            topic="latency",
            records=self.scale.choose(5_000, 300),
            warm_up=self.scale.choose(500, 50),
        )
        return {"p50_ms": answer["p50_ms"], "p99_ms": answer["p99_ms"]}
