"""Fill a node with everything its files can hold, remember it, and check later that somebody serves all of it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from tests.clients import confluent, samples
from tests.clients.samples import CODECS, Record
from tests.support.nodes import Node
from tests.support.processes import wait_until


@dataclass
class Stock:
    """What a node was given: records of each partition from its first offset on, settings, and what was deleted."""

    records: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    first_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    deleted_topics: list[str] = field(default_factory=list)
    topic_ids: dict[str, str] = field(default_factory=dict)
    append_time_topics: set[str] = field(default_factory=set)


def now_records(count: int, size: int, seed: int) -> list[Record]:
    """Records of now, so that no retention finds them too old; keyed, some with headers."""
    noise = random.Random(seed)
    base_ms = int(time.time() * 1000) - count
    return [
        Record(
            b"key-%d" % (number % 50),
            noise.randbytes(size // 2) + bytes(size - size // 2),
            base_ms + number,
            (("number", b"%d" % number),) if number % 7 == 0 else (),
        )
        for number in range(count)
    ]


def fill(node: Node) -> Stock:
    """Write it all. No consumer groups and no transactions: this is about logs, topics and settings."""
    stock = Stock()

    def make(topic: str, partitions: int = 1, **config: str) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        confluent.create_topic(node, topic, partitions, settings)
        stock.configs[topic] = settings
        for partition in range(partitions):
            stock.records[topic, partition] = []

    def write(topic: str, records: list[Record], partition: int = 0, **settings: Any) -> None:
        confluent.produce_all(node, topic, records, partition=partition, **settings)
        stock.records[topic, partition] += records

    for number, codec in enumerate(CODECS):
        make(f"codec-{codec}", partitions=2, retention_ms="-1")
        write(f"codec-{codec}", samples.every_shape(), 0, compression_type=codec)
        write(f"codec-{codec}", now_records(500, 300, number), 1, compression_type=codec, enable_idempotence=True)
    make("segments", partitions=3, segment_bytes="1048576", index_interval_bytes="1024", retention_ms="-1")
    for partition in range(3):
        for turn in range(3):
            write(
                "segments",
                now_records(1_200, 1_000, partition * 10 + turn),
                partition,
                enable_idempotence=turn != 1,
                compression_type=CODECS[turn + partition],
                batch_size=30_000,
            )
    make("append-time", message_timestamp_type="LogAppendTime")
    stock.append_time_topics.add("append-time")
    write("append-time", now_records(300, 100, 77), compression_type="lz4")
    write("append-time", now_records(300, 100, 78))
    make("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.99")
    write("compacted", now_records(400, 100, 79))
    make("empty", partitions=4)
    make("large")
    write("large", [Record(b"k", random.Random(5).randbytes(900_000), int(time.time() * 1000)) for _ in range(5)])
    make("trimmed", segment_bytes="1048576", retention_ms="-1")
    write("trimmed", now_records(2_500, 1_000, 80), batch_size=50_000)
    _trim(node, stock, "trimmed", 1_700)
    make("grown")
    write("grown", now_records(10, 10, 81))
    _grow(node, stock, "grown", 3)
    write("grown", now_records(10, 10, 82), partition=2)
    _alter(node, stock, "grown", {"retention.ms": "86400000", "max.message.bytes": "200000"})
    for topic in ("deleted-at-once", "deleted-and-made-again"):
        make(topic, partitions=2)
        write(topic, now_records(100, 100, 83))
        _delete(node, stock, topic)
    make("deleted-and-made-again")
    write("deleted-and-made-again", now_records(20, 20, 84), enable_idempotence=True)
    remember_ids(node, stock)
    return stock


def _trim(node: Node, stock: Stock, topic: str, offset: int) -> None:
    wanted = TopicPartition(topic, 0, offset)
    client = confluent.admin(node)
    client.delete_records([wanted])[wanted].result(60)
    stock.records[topic, 0] = stock.records[topic, 0][offset:]
    stock.first_offsets[topic, 0] = offset


def _grow(node: Node, stock: Stock, topic: str, partitions: int) -> None:
    client = confluent.admin(node)
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)
    wait_until(
        lambda: len(client.list_topics(topic, timeout=60).topics[topic].partitions) == partitions, 60, "new partitions"
    )
    for partition in range(partitions):
        stock.records.setdefault((topic, partition), [])


def _alter(node: Node, stock: Stock, topic: str, settings: dict[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = confluent.admin(node)
    client.incremental_alter_configs([resource])[resource].result(60)
    stock.configs[topic].update(settings)


def _delete(node: Node, stock: Stock, topic: str) -> None:
    client = confluent.admin(node)
    client.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in client.list_topics(timeout=60).topics, 60, f"{topic} is gone")
    stock.deleted_topics.append(topic)
    stock.configs.pop(topic)
    for known in [each for each in stock.records if each[0] == topic]:
        stock.records.pop(known)


def remember_ids(node: Node, stock: Stock) -> None:
    client = confluent.admin(node)
    names = sorted({topic for topic, _ in stock.records})
    described = client.describe_topics(TopicCollection(names))
    stock.topic_ids = {name: str(described[name].result(60).topic_id) for name in names}
    stock.deleted_topics = [each for each in stock.deleted_topics if each not in stock.topic_ids]


def check_served(node: Node, stock: Stock) -> None:
    """Every record, offset, topic id and setting is as it was left, and what was deleted is not back."""
    client = confluent.admin(node)
    topics = set(client.list_topics(timeout=60).topics)
    assert topics >= {topic for topic, _ in stock.records}
    assert not topics & set(stock.deleted_topics)
    ids = Stock(records=stock.records)
    remember_ids(node, ids)
    assert ids.topic_ids == stock.topic_ids
    for topic, expected in stock.configs.items():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        shown = client.describe_configs([resource])[resource].result(60)
        assert {name: shown[name].value for name in expected} == expected
    _check_records(node, stock)


def bounds_of(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """First and next offset; a broker that has just started may not lead yet what it is about to lead."""
    deadline = time.monotonic() + 60
    while True:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 60)
            return low, high
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _check_records(node: Node, stock: Stock) -> None:
    read: dict[tuple[str, int], list[Message]] = {each: [] for each in stock.records}
    with confluent.reading(node, [], check_crcs=True) as consumer:
        for (topic, partition), expected in stock.records.items():
            first = stock.first_offsets.get((topic, partition), 0)
            assert bounds_of(consumer, topic, partition) == (first, first + len(expected)), f"{topic}-{partition}"
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in stock.records])
        for message in confluent.take(consumer, sum(map(len, stock.records.values())), timeout_s=60):
            read[message.topic() or "", message.partition() or 0].append(message)
    for (topic, partition), expected in stock.records.items():
        first = stock.first_offsets.get((topic, partition), 0)
        messages = read[topic, partition]
        assert [each.offset() for each in messages] == list(range(first, first + len(expected)))
        found = [confluent.as_record(each) for each in messages]
        if topic in stock.append_time_topics:
            found = [Record(each.key, each.value, 0, each.headers) for each in found]
            expected = [Record(each.key, each.value, 0, each.headers) for each in expected]
        assert found == expected, f"{topic}-{partition}"


def write_more(node: Node, stock: Stock) -> None:
    """Who took the directory over goes on writing where the log ends."""
    writer = confluent.producer(node, enable_idempotence=True)
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    for (topic, partition), records in stock.records.items():
        more = now_records(25, 50, 99)
        for each in more:
            writer.produce(
                topic,
                key=each.key,
                value=each.value,
                timestamp=each.timestamp_ms,
                headers=list(each.headers),
                partition=partition,
                on_delivery=delivered,
            )
        records += more
    assert writer.flush(60) == 0
    assert not failures
