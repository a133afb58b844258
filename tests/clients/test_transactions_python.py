"""Transactions of aiokafka and kafka-python: written with one library, judged with confluent-kafka."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonTopicPartition
from kafka.structs import OffsetAndMetadata

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.clients.test_transactions import NODE_PROPERTIES as PROPERTIES
from tests.clients.test_transactions import read_committed
from tests.support.nodes import Node

NODE_PROPERTIES = PROPERTIES


def fill(node: Node, topic: str, count: int) -> None:
    confluent.produce_all(node, topic, [Record(None, b"%d" % number, 1) for number in range(count)])


def test_aiokafka_copies_with_its_offsets(node: Node, make_topic: TopicMaker) -> None:
    source, target = make_topic(), make_topic()
    fill(node, source, 10)
    asyncio.run(_copy(node, source, target))
    assert read_committed(node, target, 10) == [str(number) for number in range(10)]


async def _copy(node: Node, source: str, target: str) -> None:
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=node.bootstrap,
        group_id=source,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=node.bootstrap, transactional_id=source)
    partition = AioTopicPartition(source, 0)
    async with asyncio.timeout(120), consumer, producer:
        rows = []
        while len(rows) < 10:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                rows += batch
        async with producer.transaction():
            for row in rows[:5]:
                await producer.send_and_wait(target, row.value, partition=0)
            await producer.send_offsets_to_transaction({partition: 5}, source)
        assert await consumer.committed(partition) == 5
        await producer.begin_transaction()
        for row in rows[5:]:
            await producer.send_and_wait(target, row.value, partition=0)
        await producer.send_offsets_to_transaction({partition: 10}, source)
        await producer.abort_transaction()
        assert await consumer.committed(partition) == 5
        async with producer.transaction():
            for row in rows[5:]:
                await producer.send_and_wait(target, row.value, partition=0)
            await producer.send_offsets_to_transaction({partition: 10}, source)
        assert await consumer.committed(partition) == 10


def test_aiokafka_is_fenced(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()

    async def run() -> None:
        zombie = AIOKafkaProducer(bootstrap_servers=node.bootstrap, transactional_id=topic)
        successor = AIOKafkaProducer(bootstrap_servers=node.bootstrap, transactional_id=topic)
        async with asyncio.timeout(120):
            await zombie.start()
            await zombie.begin_transaction()
            await zombie.send_and_wait(topic, b"left open", partition=0)
            await successor.start()
            async with successor.transaction():
                await successor.send_and_wait(topic, b"good", partition=0)
            with pytest.raises(ProducerFenced):
                await zombie.commit_transaction()
            await successor.stop()
            await zombie.stop()

    asyncio.run(run())
    assert read_committed(node, topic, 1) == ["good"]


def test_kafka_python_copies_with_its_offsets(node: Node, make_topic: TopicMaker) -> None:
    source, target = make_topic(), make_topic()
    fill(node, source, 10)
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, transactional_id=source)
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=node.bootstrap,
        group_id=source,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        consumer_timeout_ms=60_000,
    )
    try:
        producer.init_transactions()
        rows = [row for _, row in zip(range(10), consumer, strict=False)]
        partition = PythonTopicPartition(source, 0)
        for end in ("abort", "commit"):
            producer.begin_transaction()
            for row in rows:
                producer.send(target, f"{end} {row.value.decode()}".encode(), partition=0).get(20)
            offsets = {partition: OffsetAndMetadata(10, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if end == "abort":
                producer.abort_transaction()
                assert consumer.committed(partition) is None
            else:
                producer.commit_transaction()
                assert consumer.committed(partition) == 10
        read = KafkaConsumer(
            target,
            bootstrap_servers=node.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=60_000,
        )
        assert [row.value.decode() for _, row in zip(range(10), read, strict=False)] == [
            f"commit {number}" for number in range(10)
        ]
        read.close()
    finally:
        consumer.close()
        producer.close()
    assert read_committed(node, target, 10) == [f"commit {number}" for number in range(10)]
