"""How many bytes a second go in and come out."""

from __future__ import annotations

import os
from typing import ClassVar

from benchmarks import administration, clients
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

MEGABYTE = 1_000_000
PARTITIONS = 3


class Throughput(Benchmark[Node]):
    """One producer process, then one consumer process, records of 1 kB."""

    name: ClassVar[str] = "throughput"
    title: ClassVar[str] = "Produce and consume, records of 1 kB"
    method: ClassVar[str] = (
        "1,000,000 records of 1 kB to three partitions of a new topic, acks=all, no compression, one producer process;"
        " then one consumer process reads them all from the start (`fetch.queue.backoff.ms=10` for both peers). The"
        " client takes one of the machine's cores or more, so the faster a peer is, the more the client is the limit."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("produce_mb_s", "produce 1 kB, RF 1, acks=all", "MB/s", higher_is_better=True, ratio_at_least=2),
        Figure("consume_mb_s", "consume 1 kB", "MB/s", higher_is_better=True, ratio_at_least=1),
        Figure("produce_cpu_s", "CPU of the node for 1 GB in", "s"),
        Figure("consume_cpu_s", "CPU of the node for 1 GB out", "s"),
    )

    def run(self, node: Node, number: int) -> dict[str, float]:
        """A new topic, in and out, and away with it."""
        topic = f"throughput-{number}"
        administration.create_topic(node, topic, PARTITIONS)
        records = self.scale.choose(1_000_000, 100_000)
        values: dict[str, float] = {}
        for command in ("produce", "consume"):
            cpu_s = node.cpu_seconds()
            answer = clients.call(
                command, bootstrap=node.bootstrap, topic=topic, partitions=PARTITIONS, records=records, size=1_000
            )
            values[f"{command}_mb_s"] = answer["bytes"] / answer["seconds"] / MEGABYTE
            values[f"{command}_cpu_s"] = (node.cpu_seconds() - cpu_s) * 1_000_000 / records
        administration.delete_topic(node, topic)
        os.sync()  # what this run left for the disk is not the next one's burden
        return values
