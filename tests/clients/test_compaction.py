"""Compacted topics as clients see them: the last value of every key stays, through load, kills and new settings."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.clients import confluent
from tests.clients.compacted import WAIT_S, cleaned_to, last_values, read_all, record
from tests.clients.conftest import TopicMaker
from tests.support.nodes import Node, peer_under_test
from tests.support.processes import wait_until

NODE_PROPERTIES = {
    "log.cleaner.backoff.ms": "100",
    "log.segment.delete.delay.ms": "200",
    "log.retention.check.interval.ms": "500",
}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "internal_segment_bytes": "60000"}


def test_the_last_value_of_every_key_stays(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(**COMPACTED, delete_retention_ms="0")
    chance = random.Random(1)
    written = [record(b"key %d" % chance.randrange(50), b"%d" % number * 20) for number in range(10_000)]
    written += [record(b"key %d" % number, None) for number in range(10)]
    written += [record(b"key 49", b"end" * 20)] * 3_000
    offsets = {
        message.offset(): (message.key(), message.value())
        for message in confluent.produce_all(node, topic, written, linger_ms=1, batch_size=3_000)
    }
    expected: dict[bytes, bytes] = {}
    for one in written:
        assert one.key is not None
        expected.pop(one.key, None)
        if one.value is not None:
            expected[one.key] = one.value
    wait_until(lambda: cleaned_to(node, topic) > 11_500, WAIT_S, "it is compacted, some of the last 3,000 as well")
    messages = read_all(node, topic)
    assert len(messages) < 3_000
    assert last_values(messages) == expected
    read = [message.offset() or 0 for message in messages]
    assert read == sorted(read)
    for message in messages:
        assert offsets[message.offset()] == (message.key(), message.value())


def test_a_record_without_a_key_is_refused(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(**COMPACTED)
    with pytest.raises(KafkaException) as refused:
        confluent.produce_all(node, topic, [record(None, b"value")])
    assert refused.value.args[0].code() == KafkaError.INVALID_RECORD
    assert confluent.produce_all(node, topic, [record(b"", b"an empty key is one")])[0].offset() == 0


def test_from_delete_to_compact_at_run_time(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(cleanup_policy="delete", min_cleanable_dirty_ratio="0.01", internal_segment_bytes="60000")
    written = [record(b"key %d" % (number % 7), b"%d" % number * 20) for number in range(5_000)]
    written[100:200] = [record(None, b"without a key")] * 100
    confluent.produce_all(node, topic, written, batch_size=3_000)
    assert len(read_all(node, topic)) == 5_000
    confluent.set_on_topic(node, topic, "cleanup.policy", "compact")
    wait_until(lambda: len(read_all(node, topic)) < 1_500, WAIT_S, "it is compacted")
    found = last_values(read_all(node, topic))
    assert found == {b"key %d" % (number % 7): b"%d" % number * 20 for number in range(4_993, 5_000)}


# --- the offsets topic ---


@contextmanager
def own_node(**properties: str) -> Iterator[Node]:
    """A node of the test's own, to be killed at will."""
    peer = peer_under_test()
    settings = {**NODE_PROPERTIES, **{name.replace("_", "."): value for name, value in properties.items()}}
    with tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory:
        node = peer(Path(directory), properties=settings)
        with node.start():
            yield node


NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""What a node that has just come back may say, and librdkafka hands on: an application asks again."""


def committed_by(consumer: Consumer, partitions: int) -> list[int]:
    """The offsets of a group, asked for until the coordinator knows."""
    wanted = [TopicPartition("orders", index) for index in range(partitions)]
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return [one.offset for one in consumer.committed(wanted, WAIT_S)]
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_the_offsets_topic_stays_small_and_right() -> None:
    """Many commits, few of which matter: after a clean stop and after a kill each group is where it said it was."""
    partitions, rounds, groups = 60, 150, 4
    with own_node(offsets_topic_segment_bytes="1048576", offsets_topic_num_partitions="1") as node:
        confluent.create_topic(node, "orders", partitions)
        consumers = [
            Consumer({"bootstrap.servers": node.bootstrap, "group.id": f"group-{number}", "log_level": 0})
            for number in range(groups)
        ]

        def committed() -> list[list[int]]:
            return [committed_by(consumer, partitions) for consumer in consumers]

        for done in range(1, rounds + 1):
            for number, consumer in enumerate(consumers):
                offsets = [
                    TopicPartition("orders", index, done * 1000 + number * 100 + index) for index in range(partitions)
                ]
                consumer.commit(offsets=offsets, asynchronous=False)
        expected = [[rounds * 1000 + number * 100 + index for index in range(partitions)] for number in range(groups)]
        assert committed() == expected
        directory = node.data_directory / "__consumer_offsets-0"
        written = rounds * groups * partitions * 80
        assert written > 2 * 1_048_576

        def size() -> int:
            return sum(each.stat().st_size for each in directory.glob("*.log*"))

        wait_until(lambda: size() < 1_048_576 + 200_000, WAIT_S, "only the newest segment is larger than what counts")
        assert cleaned_to(node, "__consumer_offsets") > 0
        node.stop()
        node.start()
        assert committed() == expected
        node.kill()
        node.start()
        assert committed() == expected
        for consumer in consumers:
            consumer.close()


# --- under load ---

MOST_UNDER_WAY = 2_000
"""So that the writer is no further ahead than the node can catch up with: Apache Kafka makes a segment of 60 kB in
up to 70 ms, and a full queue of librdkafka's (100,000) then outlives its timeout."""


class Writer:
    """Writes rising numbers to a few keys in a thread; notes the last that was acknowledged of each."""

    def __init__(self, node: Node, topic: str) -> None:
        self.acknowledged: dict[bytes, int] = {}
        self.sent = 0
        self.failures: list[KafkaError] = []
        self._topic = topic
        self._stopping = threading.Event()
        self._producer = confluent.producer(
            node,
            acks="all",
            enable_idempotence=True,
            linger_ms=1,
            batch_size=4_000,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
            message_timeout_ms=120_000,
            queue_buffering_max_messages=MOST_UNDER_WAY,
            log_level=0,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        self.acknowledged[key] = max(int(value.split(b" ")[0]), self.acknowledged.get(key, -1))

    def _run(self) -> None:
        chance = random.Random(7)
        while not self._stopping.is_set():
            key = b"key %d" % chance.randrange(40)
            try:
                self._producer.produce(self._topic, b"%d " % self.sent + b"x" * 200, key, on_delivery=self._delivered)
                self.sent += 1
            except BufferError:
                time.sleep(0.01)
            self._producer.poll(0)
            if self.sent % 20 == 0:
                time.sleep(0.001)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def test_no_acknowledged_last_value_is_lost_under_load_and_kills() -> None:
    with own_node() as node:
        topic = "state"
        settings = {name.replace("_", "."): value for name, value in COMPACTED.items()}
        confluent.create_topic(node, topic, 1, settings)
        writer = Writer(node, topic)
        for _ in range(2):
            before = cleaned_to(node, topic)
            wait_until(lambda before=before: cleaned_to(node, topic) > before + 2_000, WAIT_S, "it cleans under load")  # type: ignore[misc]
            node.kill()
            node.start()
        writer.stop()
        assert not writer.failures
        wait_until(lambda: cleaned_to(node, topic) > writer.sent - 2_000, WAIT_S, "it is compacted in the end")
        messages = read_all(node, topic)
        found = {key: int(value.split(b" ")[0]) for key, value in last_values(messages).items()}
        assert found == writer.acknowledged
        assert len(messages) < writer.sent / 2
