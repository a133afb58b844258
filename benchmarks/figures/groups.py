"""How soon a large group is settled, and how fast a group reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from benchmarks import administration, clients, group_clients
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

MEGABYTE = 1_000_000
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class Rebalance(Benchmark[Node]):
    """The hundredth member joins."""

    name: ClassVar[str] = "rebalance"
    title: ClassVar[str] = "A rebalance of 100 members on 300 partitions"
    method: ClassVar[str] = (
        "99 members of a group have settled on 300 partitions and report every 100 ms; another one joins. Measured is"
        " the time from its first request until all 100 have their part of one generation (classic protocol, eager) or"
        " one epoch (KIP-848, uniform), all 300 partitions in all; the median of five turns a run. Members are"
        " coroutines of one process that send raw requests, the same for both peers, and report when the answers tell"
        " them to (KIP-848; while a group changes Tidelog asks for that after 50 ms); no delay before the first"
        " rebalance and, for KIP-848, no least time between two assignments, on both."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("classic_s", "100 members on 300 partitions settle, classic protocol", "s", ratio_at_most=1),
        Figure("consumer_s", "the same, KIP-848", "s", ratio_at_most=1),
        Figure("cpu_s", "CPU of the node for both", "s"),
    )
    properties: ClassVar[Mapping[str, str]] = PROPERTIES
    topic: ClassVar[str] = "rebalanced"

    def prepare(self, node: Node) -> None:
        """The topic."""
        administration.create_topic(node, self.topic, self._partitions)

    @property
    def _partitions(self) -> int:
        return self.scale.choose(300, 30)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Both protocols, a new group each."""
        values: dict[str, float] = {}
        cpu_s = node.cpu_seconds()
        for protocol in ("classic", "consumer"):
            answer = group_clients.call(
                "rebalance",
                bootstrap=node.bootstrap,
                topic=self.topic,
                partitions=self._partitions,
                members=self.scale.choose(100, 10),
                turns=self.scale.choose(5, 2),
                protocol=protocol,
            )
            values[f"{protocol}_s"] = answer["seconds"]
        values["cpu_s"] = node.cpu_seconds() - cpu_s
        return values


class GroupRead(Benchmark[Node]):
    """Ten consumers share a topic."""

    name: ClassVar[str] = "group-read"
    title: ClassVar[str] = "A group of 10 consumers reads"
    method: ClassVar[str] = (
        "1,000,000 records of 1 kB in 30 partitions, read from the start by 10 confluent-kafka consumers of one group"
        " (classic protocol) in one process; from when all of them have their partitions until the last record."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("read_mb_s", "a group of 10 consumers reads 1 kB", "MB/s", higher_is_better=True, ratio_at_least=1),
        Figure("cpu_s", "CPU of the node for 1 GB", "s"),
    )
    properties: ClassVar[Mapping[str, str]] = PROPERTIES
    topic: ClassVar[str] = "shared"
    partitions: ClassVar[int] = 30

    @property
    def _records(self) -> int:
        return self.scale.choose(1_000_000, 60_000)

    def prepare(self, node: Node) -> None:
        """Fill the topic once: every run is a group of its own."""
        administration.create_topic(node, self.topic, self.partitions)
        clients.call(
            "produce",
            bootstrap=node.bootstrap,
            topic=self.topic,
            partitions=self.partitions,
            records=self._records,
            size=1_000,
        )
        os.sync()

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Read it all."""
        cpu_s = node.cpu_seconds()
        answer = group_clients.call(
            "read",
            bootstrap=node.bootstrap,
            topic=self.topic,
            partitions=self.partitions,
            members=10,
            records=self._records,
        )
        return {
            "read_mb_s": answer["bytes"] / answer["seconds"] / MEGABYTE,
            "cpu_s": (node.cpu_seconds() - cpu_s) * 1_000_000 / self._records,
        }
