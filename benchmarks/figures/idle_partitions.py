"""What a thousand partitions cost while nothing happens, and when the node starts."""

from __future__ import annotations

import time
from typing import ClassVar

from benchmarks import administration
from benchmarks.figures.start_up import seconds_to_first_record
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

TOPICS = 10


class IdlePartitions(Benchmark[Node]):
    """Ten topics of a hundred partitions, nobody connected."""

    name: ClassVar[str] = "idle-partitions"
    title: ClassVar[str] = "1,000 idle partitions"
    method: ClassVar[str] = (
        "Ten topics of 100 partitions. Time from the start of the process (after a clean stop) until a record for the"
        " last partition is acknowledged; then, 10 s later and with no client connected, CPU time over 30 s."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("cpu_percent", "1,000 idle partitions: CPU", "% of a core", at_most=2),
        Figure("start_s", "1,000 partitions: start to first record", "s", at_most=2),
        Figure("resident_mb", "1,000 idle partitions: memory", "MB"),
    )
    keeps_node: ClassVar[bool] = False

    @property
    def partitions(self) -> int:
        """Of each topic."""
        return self.scale.choose(100, 10)

    def prepare(self, node: Node) -> None:
        """The topics."""
        for number in range(TOPICS):
            administration.create_topic(node, f"idle-{number}", self.partitions)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Start, wait, watch, stop."""
        start_s = seconds_to_first_record(node, f"idle-{TOPICS - 1}", self.partitions - 1)
        time.sleep(self.scale.choose(10, 1))
        watch_s = self.scale.choose(30, 3)
        before_s = node.cpu_seconds()
        time.sleep(watch_s)
        cpu_percent = (node.cpu_seconds() - before_s) / watch_s * 100
        resident = node.resident_bytes()
        node.stop(120)
        return {"cpu_percent": cpu_percent, "start_s": start_s, "resident_mb": resident / 1_000_000}
