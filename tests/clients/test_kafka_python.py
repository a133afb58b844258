"""kafka-python (pure Python, idempotent by default) writes and reads by assign."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    InvalidReplicationFactorError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.clients import samples
from tests.clients.conftest import TopicMaker
from tests.clients.samples import CODECS, Record
from tests.support.nodes import Node
from tests.support.processes import wait_until

WAIT_S = 60


def produce_all(node: Node, topic: str, records: list[Record], partition: int = 0, **settings: Any) -> list[int]:
    """Write records in order; the offsets they got."""
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, linger_ms=5, **settings)
    try:
        pending = [
            producer.send(
                topic,
                value=each.value,
                key=each.key,
                partition=partition,
                timestamp_ms=each.timestamp_ms,
                headers=list(each.headers),
            )
            for each in records
        ]
        producer.flush(WAIT_S)
        return [each.get(WAIT_S).offset for each in pending]
    finally:
        producer.close(5)


def consume_all(node: Node, topic: str, count: int, offset: int = 0, **settings: Any) -> list[Any]:
    """Read so many records of partition 0 from an offset on."""
    consumer = KafkaConsumer(
        bootstrap_servers=node.bootstrap,
        fetch_max_wait_ms=100,
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_poll_records=10_000,
        **settings,
    )
    try:
        wanted = TopicPartition(topic, 0)
        consumer.assign([wanted])
        consumer.seek(wanted, offset)
        read: list[Any] = []
        deadline = time.monotonic() + WAIT_S
        while len(read) < count:
            for batch in consumer.poll(timeout_ms=500).values():
                read.extend(batch)
            assert time.monotonic() < deadline, f"only {len(read)} of {count} records came"
        return read
    finally:
        consumer.close()


def as_record(read: Any) -> Record:
    """What was read, in the form of what was written."""
    return Record(read.key, read.value, read.timestamp, tuple((name, value) for name, value in read.headers))


def writable() -> list[Record]:
    """Every shape kafka-python agrees to send: it wants a key or a value, and no header that is null."""
    return [
        Record(each.key, each.value, each.timestamp_ms, tuple(pair for pair in each.headers if pair[1] is not None))
        for each in samples.every_shape()
        if each.key is not None or each.value is not None
    ]


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_shape_of_record_comes_back(node: Node, make_topic: TopicMaker, codec: str, idempotent: bool) -> None:
    topic = make_topic()
    compression = None if codec == "none" else codec
    offsets = produce_all(node, topic, writable(), compression_type=compression, enable_idempotence=idempotent)
    assert offsets == list(range(len(writable())))
    read = consume_all(node, topic, len(writable()))
    assert [as_record(each) for each in read] == writable()
    assert [each.offset for each in read] == offsets


def test_log_append_time_is_the_brokers(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000) - 1
    produce_all(node, topic, writable()[:7], compression_type="lz4")
    read = consume_all(node, topic, 7)
    assert all(before_ms <= each.timestamp <= time.time() * 1000 + 1 for each in read)
    assert {each.timestamp_type for each in read} == {1}


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(node: Node, make_topic: TopicMaker, acks: int | str) -> None:
    topic = make_topic()
    values = samples.numbered(1_000)
    produce_all(node, topic, [Record(None, each, 1) for each in values], acks=acks, enable_idempotence=False)
    assert [each.value for each in consume_all(node, topic, len(values))] == values


def test_twenty_thousand_records_in_order_with_and_without_fetch_sessions(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    values = samples.numbered(20_000)
    produce_all(node, topic, [Record(None, each, 1) for each in values], batch_size=100_000)
    for sessions in (True, False):
        read = consume_all(
            node, topic, len(values), enable_incremental_fetch_sessions=sessions, max_partition_fetch_bytes=150_000
        )
        assert [each.value for each in read] == values


def test_large_records_and_the_limit(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    large = [Record(b"k", bytes([each]) * 1_000_000, 1) for each in range(4)]
    produce_all(node, topic, large, max_request_size=2_000_000)
    read = consume_all(node, topic, 4, max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000)
    assert [as_record(each) for each in read] == large
    with pytest.raises(MessageSizeTooLargeError):
        produce_all(node, topic, [Record(None, bytes(1_500_000), 1)], max_request_size=2_000_000)


def test_reading_outside_the_log_is_an_error(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce_all(node, topic, [Record(None, b"x", 1)])
    with pytest.raises(OffsetOutOfRangeError):
        consume_all(node, topic, 1, offset=50)


def test_admin_calls(node: Node) -> None:
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    try:
        new = {"from-kafka-python": {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "9999"}}}
        admin.create_topics(new)
        assert "from-kafka-python" in admin.list_topics()
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics(new)
        with pytest.raises(InvalidReplicationFactorError):
            admin.create_topics({"seven": {"num_partitions": 1, "replication_factor": 7}})
        admin.create_partitions({"from-kafka-python": 6})
        wait_until(
            lambda: len(admin.describe_topics(["from-kafka-python"])[0]["partitions"]) == 6, 60, "six partitions"
        )

        resource = ConfigResource(ConfigResourceType.TOPIC, "from-kafka-python")
        shown = admin.describe_configs([resource])["topic"]["from-kafka-python"]
        assert shown["retention.ms"]["value"] == "9999"
        changed = ConfigResource(ConfigResourceType.TOPIC, "from-kafka-python", {"retention.ms": "8888"})
        admin.alter_configs([changed])

        def retention() -> str:
            value: str = admin.describe_configs([resource])["topic"]["from-kafka-python"]["retention.ms"]["value"]
            return value

        wait_until(lambda: retention() == "8888", 60, "the changed setting is shown")

        partition = TopicPartition("from-kafka-python", 0)
        produce_all(node, "from-kafka-python", [Record(None, b"x", 100 + each) for each in range(10)])
        assert admin.list_partition_offsets({partition: OffsetSpec.LATEST})[partition].offset == 10
        assert admin.list_partition_offsets({partition: OffsetSpec.EARLIEST})[partition].offset == 0
        assert admin.list_partition_offsets({partition: 105})[partition].offset == 5
        admin.delete_records({partition: 4})
        assert admin.list_partition_offsets({partition: OffsetSpec.EARLIEST})[partition].offset == 4
        assert admin.describe_cluster()["brokers"][0]["port"] == node.client_port
        assert any("from-kafka-python" in str(each) for each in admin.describe_log_dirs())

        admin.delete_topics(["from-kafka-python"])
        wait_until(lambda: "from-kafka-python" not in admin.list_topics(), 60, "the deleted topic is no longer listed")
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.delete_topics(["from-kafka-python"])
    finally:
        admin.close()
