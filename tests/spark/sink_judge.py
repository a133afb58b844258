"""What a reader of committed records finds, by librdkafka: the judge of the sink is never our own client."""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tidelog.wire.murmur2 import partition_for_key


class Found(NamedTuple):
    """One record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int


def read_committed(bootstrap: str, topic: str, partitions: int, *, timeout_s: float = 60.0) -> list[Found]:
    """All committed records of a topic, partition by partition, once nothing is open any more."""
    deadline = time.monotonic() + timeout_s
    consumer = _consumer(bootstrap, "read_committed")
    try:
        _wait_until_nothing_is_open(consumer, bootstrap, topic, partitions, deadline)
        consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
        found: list[Found] = []
        finished: set[int] = set()
        while len(finished) < partitions:
            assert time.monotonic() < deadline, f"the end of {topic} was not reached: {finished}"
            for message in consumer.consume(5_000, 1.0):
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    finished.add(message.partition())
                    continue
                finished.discard(message.partition())
                found.append(
                    Found(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        message.headers() or [],
                        message.timestamp()[1],
                    )
                )
        return sorted(found)
    finally:
        consumer.close()


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"judge-{uuid4()}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def _wait_until_nothing_is_open(
    consumer: Consumer, bootstrap: str, topic: str, partitions: int, deadline: float
) -> None:
    """A commit is answered before its markers are written, and a new leader learns of its high watermark in time."""
    everything = _consumer(bootstrap, "read_uncommitted")
    try:
        for partition in range(partitions):
            where = TopicPartition(topic, partition)
            while True:
                with contextlib.suppress(KafkaException):
                    ends = [each.get_watermark_offsets(where, 10)[1] for each in (everything, consumer)]
                    if ends[0] == ends[1]:
                        break
                assert time.monotonic() < deadline, f"a transaction is open in {topic}-{partition}"
                time.sleep(0.05)
    finally:
        everything.close()


def require_counted_once(found: list[Found], partitions: int, count: int) -> None:
    """That the numbers 0 to `count` - 1 are there once each, where the Java client would put them."""
    numbers = sorted(int(one.key or b"-1") for one in found)
    lost = sorted(set(range(count)) - set(numbers))
    unexpected = sorted(set(numbers) - set(range(count)))
    twice = sorted({number for index, number in enumerate(numbers[1:]) if number == numbers[index]})
    assert not lost, f"lost {len(lost)}: {lost[:5]}"
    assert not unexpected, f"unexpected {len(unexpected)}: {unexpected[:5]}"
    assert not twice, f"twice {len(twice)}: {twice[:5]}"
    for one in found:
        assert one.key is not None
        assert one.value == b"value-" + one.key
        assert one.partition == partition_for_key(one.key, partitions)
