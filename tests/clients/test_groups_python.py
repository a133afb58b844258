"""Groups of aiokafka and kafka-python consumers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonTopicPartition

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.clients.test_groups import NODE_PROPERTIES as PROPERTIES
from tests.support.nodes import Node
from tests.support.processes import wait_until

NODE_PROPERTIES = PROPERTIES
PARTITIONS = 2
EVERYTHING = {(partition, offset) for partition in range(PARTITIONS) for offset in range(20)}


@pytest.fixture
def topic(node: Node, make_topic: TopicMaker) -> str:
    name = make_topic(PARTITIONS)
    for partition in range(PARTITIONS):
        confluent.produce_all(node, name, [Record(None, b"x", 1)] * 20, partition=partition)
    return name


def test_aiokafka_members_share_and_resume(node: Node, topic: str) -> None:
    asyncio.run(_share_and_resume(node, topic))


async def _share_and_resume(node: Node, topic: str) -> None:
    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=node.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            session_timeout_ms=6_000,
        )

    first, second = member(), member()
    await first.start()
    await second.start()
    read: set[tuple[int, int]] = set()
    async with asyncio.timeout(120):
        while read != EVERYTHING or not (first.assignment() and second.assignment()):
            for one in (first, second):
                for rows in (await one.getmany(timeout_ms=100)).values():
                    read |= {(row.partition, row.offset) for row in rows}
        assert not first.assignment() & second.assignment()
        await first.commit()
        await second.commit()
        await second.stop()
        while len(first.assignment()) < PARTITIONS:
            await first.getmany(timeout_ms=100)
        committed = [await first.committed(AioTopicPartition(topic, number)) for number in range(PARTITIONS)]
    await first.stop()
    assert committed == [20, 20]


class PythonMember(threading.Thread):
    """A kafka-python consumer: it joins only while it is polled, so it has a thread of its own."""

    def __init__(self, node: Node, topic: str) -> None:
        super().__init__()
        self.read: set[tuple[int, int]] = set()
        self.partitions: set[int] = set()
        self.stopping, self.committed, self.leaving = threading.Event(), threading.Event(), threading.Event()
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=node.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            session_timeout_ms=6_000,
        )
        # By a pattern it asks for partitions before it joins. By name it may join first, and then again when it hears
        # of them; kafka-python 3.0 forgets that second join where a poll ends in the middle of it, and falls silent.
        self._consumer.subscribe(pattern=f"^{topic}$")
        self.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            for rows in self._consumer.poll(100).values():
                self.read.update((row.partition, row.offset) for row in rows)
            self.partitions = {one.partition for one in self._consumer.assignment()}
        self._consumer.commit()
        self.committed.set()
        self.leaving.wait(60)
        self._consumer.close()

    @property
    def has_read_its_own(self) -> bool:
        """Whether it has all of what is its own, whoever else has read that before: it commits where it is itself."""
        return all((partition, offset) in self.read for partition in self.partitions for offset in range(20))


def stop(members: list[PythonMember]) -> None:
    """All commit, then all leave: who is told to join again because another left may not commit."""
    for one in members:
        one.stopping.set()
    for one in members:
        one.committed.wait(60)
    for one in members:
        one.leaving.set()
        one.join(60)
        assert not one.is_alive()


def test_kafka_python_members_share_and_resume(node: Node, topic: str) -> None:
    members = [PythonMember(node, topic), PythonMember(node, topic)]
    try:
        wait_until(
            lambda: (
                sorted(len(one.partitions) for one in members) == [1, 1]
                and all(one.has_read_its_own for one in members)
            ),
            60,
            "both members read",
        )
        assert not members[0].partitions & members[1].partitions
    finally:
        stop(members)
    reader: Any = KafkaConsumer(bootstrap_servers=node.bootstrap, group_id=topic)
    committed = [reader.committed(PythonTopicPartition(topic, number)) for number in range(PARTITIONS)]
    reader.close()
    assert committed == [20, 20]
