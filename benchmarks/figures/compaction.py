"""How fast a log is compacted."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import ClassVar

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks import administration
from benchmarks.apart import Failed
from benchmarks.clients import PRODUCER_SETTINGS
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node
from tidelog.log import checkpoints
from tidelog.runtime.files import DirectoryStorage

MEGABYTE = 1_000_000
KEYS = 20_000
POLL_S = 0.02
WITHIN_S = 600.0


class Compaction(Benchmark[Node]):
    """A dirty log is released to the cleaner."""

    name: ClassVar[str] = "compaction"
    title: ClassVar[str] = "Compaction of records of 1 kB"
    method: ClassVar[str] = (
        "500,000 records of 1 kB with 20,000 keys drawn at random are written to a compacted topic that is kept from"
        " being compacted (`min.cleanable.dirty.ratio=1`), then released. Measured is from there until"
        " `cleaner-offset-checkpoint` has passed the last closed segment: bytes of those segments for each second of"
        " CPU time of all the peer's processes, which is what one core does, and for each second of the clock."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("core_mb_s", "compaction of 1 kB records, by one core", "MB/s", higher_is_better=True, at_least=50),
        Figure("clock_mb_s", "the same, by the clock", "MB/s", higher_is_better=True),
    )
    properties: ClassVar[Mapping[str, str]] = {
        "log.cleaner.backoff.ms": "50",
        "log.segment.delete.delay.ms": "100",
    }

    def run(self, node: Node, number: int) -> dict[str, float]:
        """A new topic, written, released, compacted and away with it."""
        topic = f"compacted-{number}"
        records = self.scale.choose(500_000, 40_000)
        segment_bytes = self.scale.choose(67_108_864, 4_194_304)
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        settings = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "1",
            "segment.bytes": str(segment_bytes),
        }
        admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(120)
        _write(node, topic, records)
        os.sync()
        directory = node.data_directory / f"{topic}-0"
        *closed, active = sorted(directory.glob("*.log"))
        size = sum(each.stat().st_size for each in closed)
        end_offset = int(active.stem)
        cpu_s, begun_s = node.cpu_seconds(), time.perf_counter()
        entry = ConfigEntry("min.cleanable.dirty.ratio", "0.001", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(120)
        while _cleaned_to(node, topic) < end_offset:
            if time.perf_counter() - begun_s > WITHIN_S:
                raise Failed(f"{topic} is compacted up to {_cleaned_to(node, topic)}, not to {end_offset}")
            time.sleep(POLL_S)
        seconds, cpu_s = time.perf_counter() - begun_s, node.cpu_seconds() - cpu_s
        left = sum(each.stat().st_size for each in directory.glob("*.log") if each != active)
        if left > size / 2:
            raise Failed(f"{left} of {size} bytes are left: nothing was compacted")
        administration.delete_topic(node, topic)
        return {"core_mb_s": size / cpu_s / MEGABYTE, "clock_mb_s": size / seconds / MEGABYTE}


def _write(node: Node, topic: str, records: int) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": node.bootstrap} | PRODUCER_SETTINGS)
    chance = random.Random(1)
    value = chance.randbytes(1_000)
    for _ in range(records):
        key = b"key %06d" % chance.randrange(KEYS)
        while True:
            try:
                producer.produce(topic, value, key, partition=0, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(600) or failures:
        raise Failed(f"not everything was stored: {failures[:1]}")


def _cleaned_to(node: Node, topic: str) -> int:
    storage = DirectoryStorage(str(node.data_directory))
    return checkpoints.read(storage, checkpoints.CLEANER_OFFSETS).get((topic, 0), 0)
