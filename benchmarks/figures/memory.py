"""How much memory a node takes, before and after work."""

from __future__ import annotations

import time
from typing import ClassVar

from benchmarks import administration, clients
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

MEGABYTE = 1_000_000
PARTITIONS = 3


class Memory(Benchmark[Node]):
    """A fresh start each time; RSS of all processes of the node."""

    name: ClassVar[str] = "memory"
    title: ClassVar[str] = "Memory"
    method: ClassVar[str] = (
        "RSS of all processes of the node: 10 s after a start without clients, and after 1 GB (1,000,000 × 1 kB, three"
        " partitions) was written and read back. Kafka with the heap its release starts with (1 GB)."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("idle_mb", "memory, idle", "MB", at_most=45),
        Figure("loaded_mb", "memory, after 1 GB through", "MB", at_most=90),
    )
    keeps_node: ClassVar[bool] = False
    discarded_runs: ClassVar[int] = 0

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Start, look, work, look."""
        node.start()
        time.sleep(self.scale.choose(10, 1))
        idle = node.resident_bytes()
        topic = f"memory-{number}"
        administration.create_topic(node, topic, PARTITIONS)
        records = self.scale.choose(1_000_000, 50_000)
        for command in ("produce", "consume"):
            clients.call(command, bootstrap=node.bootstrap, topic=topic, partitions=PARTITIONS, records=records)
        loaded = node.resident_bytes()
        administration.delete_topic(node, topic)
        node.stop()
        return {"idle_mb": idle / MEGABYTE, "loaded_mb": loaded / MEGABYTE}
