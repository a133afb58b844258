"""aiokafka (asyncio, pure Python with C parts) writes and reads by assign."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError

from tests.clients import samples
from tests.clients.conftest import TopicMaker
from tests.clients.samples import CODECS, Record
from tests.support.nodes import Node

WAIT_S = 60


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run one test's coroutine, never for longer than a test may take."""

    async def bounded() -> Any:
        return await asyncio.wait_for(work, WAIT_S)

    return asyncio.run(bounded())


async def produce_all(node: Node, topic: str, records: list[Record], partition: int = 0, **settings: Any) -> list[int]:
    """Write records in order; the offsets they got."""
    async with AIOKafkaProducer(bootstrap_servers=node.bootstrap, **settings) as producer:
        pending = [
            await producer.send(
                topic,
                value=each.value,
                key=each.key,
                partition=partition,
                timestamp_ms=each.timestamp_ms,
                headers=list(each.headers),
            )
            for each in records
        ]
        answers = await asyncio.gather(*pending)
    return [-1 if each is None else each.offset for each in answers]


async def consume_all(node: Node, topic: str, count: int, partition: int = 0, **settings: Any) -> list[ConsumerRecord]:
    """Read so many records of a partition from its start."""
    read: list[ConsumerRecord] = []
    async with AIOKafkaConsumer(bootstrap_servers=node.bootstrap, fetch_max_wait_ms=100, **settings) as consumer:
        wanted = TopicPartition(topic, partition)
        consumer.assign([wanted])
        consumer.seek(wanted, 0)
        while len(read) < count:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                read.extend(batch)
    return read


def writable() -> list[Record]:
    """Every shape aiokafka agrees to send: it wants a key or a value."""
    return [each for each in samples.every_shape() if each.key is not None or each.value is not None]


def as_record(read: ConsumerRecord) -> Record:
    """What was read, in the form of what was written."""
    return Record(read.key, read.value, read.timestamp, tuple((name, value) for name, value in read.headers))


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_shape_of_record_comes_back(node: Node, make_topic: TopicMaker, codec: str, idempotent: bool) -> None:
    topic = make_topic()
    written = writable()

    async def go() -> None:
        settings = {"compression_type": None if codec == "none" else codec, "enable_idempotence": idempotent}
        offsets = await produce_all(node, topic, written, linger_ms=5, max_batch_size=65_536, **settings)
        assert offsets == list(range(len(written)))
        read = await consume_all(node, topic, len(written))
        assert [as_record(each) for each in read] == written
        assert [each.offset for each in read] == offsets

    run(go())


def test_log_append_time_is_the_brokers(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")

    async def go() -> None:
        before_ms = int(time.time() * 1000) - 1
        await produce_all(node, topic, writable()[:7], compression_type="gzip")
        read = await consume_all(node, topic, 7)
        assert all(before_ms <= each.timestamp <= time.time() * 1000 + 1 for each in read)
        assert {each.timestamp_type for each in read} == {1}

    run(go())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(node: Node, make_topic: TopicMaker, acks: int | str) -> None:
    topic = make_topic()
    written = [Record(None, each, 1) for each in samples.numbered(1_000)]

    async def go() -> None:
        await produce_all(node, topic, written, acks=acks)
        read = await consume_all(node, topic, len(written))
        assert [each.value for each in read] == [each.value for each in written]

    run(go())


def test_a_hundred_thousand_records_in_order(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    values = samples.numbered(100_000, size=60)

    async def write() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=node.bootstrap, enable_idempotence=True, max_batch_size=200_000, max_request_size=300_000
        ) as producer:
            batch = producer.create_batch()
            number = 0
            while number < len(values):
                if batch.append(key=None, value=values[number], timestamp=1) is None:
                    await producer.send_batch(batch, topic, partition=0)
                    batch = producer.create_batch()
                else:
                    number += 1
            await (await producer.send_batch(batch, topic, partition=0))

    async def go() -> None:
        await write()
        read = await consume_all(node, topic, len(values))
        assert [each.value for each in read] == values

    run(go())


def test_large_records_and_the_limit(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()

    async def go() -> None:
        large = [Record(b"k", bytes([each]) * 1_000_000, 1) for each in range(4)]
        await produce_all(node, topic, large, max_request_size=2_000_000)
        read = await consume_all(node, topic, 4, max_partition_fetch_bytes=1_000)
        assert [as_record(each) for each in read] == large
        with pytest.raises(MessageSizeTooLargeError):
            await produce_all(node, topic, [Record(None, bytes(1_500_000), 1)], max_request_size=2_000_000)

    run(go())


def test_positions_times_and_the_edges_of_the_log(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()

    async def go() -> None:
        await produce_all(node, topic, [Record(None, b"x", 1_000 + 10 * each) for each in range(100)])
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=node.bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([partition])
            assert (await consumer.beginning_offsets([partition]))[partition] == 0
            assert (await consumer.end_offsets([partition]))[partition] == 100
            found = (await consumer.offsets_for_times({partition: 1_255}))[partition]
            assert (found.offset, found.timestamp) == (26, 1_260)
            assert (await consumer.offsets_for_times({partition: 99_999}))[partition] is None
            consumer.seek(partition, 500)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.getone()

    run(go())


async def until(ask: Callable[[], Awaitable[Any]], satisfied: Callable[[Any], bool]) -> None:
    """Ask again until the answer is right: Apache Kafka's broker learns a moment after its controller."""
    while not satisfied(await ask()):  # noqa: ASYNC110 - nothing here can tell us but another answer
        await asyncio.sleep(0.01)


async def described(admin: AIOKafkaAdminClient) -> Any:
    return await admin.describe_topics(["from-aiokafka"])


def test_admin_calls(node: Node) -> None:
    async def go() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic("from-aiokafka", 2, 1, topic_configs={"retention.ms": "123456"})])
            assert "from-aiokafka" in await admin.list_topics()
            await admin.create_partitions({"from-aiokafka": NewPartitions(4)})
            await until(lambda: described(admin), lambda answer: len(answer[0]["partitions"]) == 4)
            resource = ConfigResource(ConfigResourceType.TOPIC, "from-aiokafka")
            (answer,) = await admin.describe_configs([resource])
            assert "123456" in str(answer)
            await produce_all(node, "from-aiokafka", [Record(None, b"x", 1)] * 10)
            low = await admin.delete_records({TopicPartition("from-aiokafka", 0): RecordsToDelete(before_offset=3)})
            assert low == {TopicPartition("from-aiokafka", 0): 3}
            assert (await admin.describe_cluster())["brokers"][0]["port"] == node.client_port
            await admin.delete_topics(["from-aiokafka"])
            await until(admin.list_topics, lambda topics: "from-aiokafka" not in topics)
        finally:
            await admin.close()

    run(go())
