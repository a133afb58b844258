"""Whoever writes a little to a topic that comes and goes, and deletes records of those that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.outbox import Chance
from tidelog.sim.client import Client
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.producer import Producer, ProducerSettings
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

FEW = 6
"""Records for a topic that comes and goes."""
PATIENCE_MS = 4_000
DELETE_VERSION = 2


class Scribe:
    """Leaves things behind; what became of them is for others to see."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._count = 0
        self.deleted_to: dict[tuple[str, int], int] = {}
        """By topic and partition: up to where somebody has asked for records to be deleted."""

    def write(self, topic: str, partitions: int) -> None:
        """Write a few records, as soon as there is somebody to take them, and go away."""
        self._count += 1
        settings = ProducerSettings(acks=1, enable_idempotence=False, delivery_timeout_ms=PATIENCE_MS)
        producer = Producer(self._cluster.world, f"scribe-{self._count}", self._cluster.brokers, settings)
        for number in range(FEW):
            producer.send(topic, number % partitions, f"{producer.name}.{number}")
        producer.after(PATIENCE_MS, producer.close)

    def delete_records(self, partitions: Sequence[tuple[str, int]], draw: int, note: Callable[[str], None]) -> None:
        """Delete records of a partition up to its watermark, or half of them; rather where somebody is not in sync."""
        chance = Chance(draw)
        image = self._cluster.newest_image()
        found = []
        for name, index in partitions:
            topic = image.topic(name)
            partition = None if topic is None else topic.partitions.get(index)
            if partition is not None and partition.leader >= 0:
                found.append((len(partition.isr) == len(partition.replicas), name, index, partition.leader))
        if not found:
            return
        lagging = [one for one in found if not one[0]] or found
        _, name, index, leader = lagging[chance.below(len(lagging))]
        hosted = self._cluster.process(leader).node.replicas.partitions.get((name, index))
        if hosted is None:
            return
        offset = hosted.high_watermark if chance.below(3) else hosted.high_watermark // 2
        self.deleted_to[name, index] = max(offset, self.deleted_to.get((name, index), 0))
        note(f"admin: delete {name}-{index} up to {offset}")
        wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=[wanted])], timeout_ms=PATIENCE_MS
        )
        client = Client(self._cluster.world, "eraser", self._cluster.brokers)
        client.ask(leader, ApiKey.DELETE_RECORDS, DELETE_VERSION, request, lambda _: client.close(), PATIENCE_MS)
