"""The clients of a run: producers that keep the ledger, consumers that keep what they saw, both confluent-kafka.

Producers write numbered records with acks=all and idempotence, each to all partitions, with different linger times and
codecs so that batches have many shapes. Consumers are assigned every partition from offset 0 and follow.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from tidelog.errors import TidelogError
from tidelog.ledger import ACKNOWLEDGED, FAILED, UNKNOWN, Entry, offset_told
from tidelog.verify.gaps import Gaps
from tidelog.verify.judge import Seen, number_of

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
except ImportError:
    raise TidelogError("needs the package confluent-kafka: pip install confluent-kafka") from None

RETRY_SETTINGS = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 10_000,
    "log_level": 0,
}
"""Clients that come back soon: librdkafka's own defaults would hide how soon the cluster does."""
_LINGERS_MS = (0, 5, 20, 1)
_CODECS = ("none", "lz4", "none", "zstd")
_MAX_KEY_BYTES = 400
_DELIVERY_TIMEOUT_MS = 180_000
"""A record that is not acknowledged after this long counts as a failure of the cluster."""


def now_ms() -> int:
    """Milliseconds of a clock that is never set back."""
    return int(time.monotonic() * 1000)


class Ledger:
    """The ledger of a run: one file a partition, one line a record, in the format of `tidelog.ledger`."""

    def __init__(self, open_file: Callable[[int], TextIO], partitions: int) -> None:
        self._files = [open_file(partition) for partition in range(partitions)]
        self._lock = threading.Lock()
        self.gaps = Gaps()
        self.acknowledged = 0
        self.failed = 0

    def add(self, entry: Entry) -> None:
        """Write an outcome down."""
        with self._lock:
            self._files[entry.partition].write(entry.to_line() + "\n")
            if entry.outcome == ACKNOWLEDGED:
                self.acknowledged += 1
                self.gaps.acknowledged(entry.partition, now_ms())
            else:
                self.failed += 1

    def close(self) -> None:
        """Nothing more is to come."""
        for file in self._files:
            file.close()


class NumberedProducer:
    """One producer in a thread of its own."""

    def __init__(
        self, number: int, bootstrap: str, topic: str, partitions: int, ledger: Ledger, rate: float, seed: int
    ) -> None:
        self.name = str(number)
        self.sent = 0
        self._topic = topic
        self._partitions = partitions
        self._ledger = ledger
        self._rate = rate
        self._chance = random.Random(f"{seed}/{number}")  # noqa: S311 (a reproducible load, no secret)
        self._stopping = threading.Event()
        self._unanswered: dict[int, int] = {}
        """Partition by sequence of what is on its way."""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": f"verify-producer-{number}",
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": _LINGERS_MS[number % len(_LINGERS_MS)],
                "compression.type": _CODECS[number % len(_CODECS)],
                "message.timeout.ms": _DELIVERY_TIMEOUT_MS,
                **RETRY_SETTINGS,
            }
        )
        self._thread = threading.Thread(target=self._run, name=f"producer-{number}", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Write no more; `finish` waits for what is on its way."""
        self._stopping.set()

    def finish(self, timeout_s: float) -> None:
        """Wait for the outcome of all records; those without one in time are written down as unknown."""
        self._thread.join(timeout_s)
        self._producer.flush(timeout_s)
        for sequence, partition in list(self._unanswered.items()):
            self._note(sequence, partition, -1, UNKNOWN, "no answer by the end of the run")

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stopping.is_set():
            due = int((time.monotonic() - started) * self._rate) - self.sent
            for _ in range(min(due, 500)):
                self._send()
            self._producer.poll(0.002)

    def _send(self) -> None:
        sequence = self.sent
        partition = self._chance.randrange(self._partitions)
        key = self._chance.randbytes(self._chance.randrange(_MAX_KEY_BYTES))

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._note(sequence, partition, offset_told(message.offset()), ACKNOWLEDGED, "")
            else:
                self._note(sequence, partition, -1, FAILED, error.name())

        try:
            self._producer.produce(
                self._topic, value=f"{self.name}:{sequence}", key=key, partition=partition, on_delivery=delivered
            )
        except BufferError:
            return  # it is behind; what is due stays due
        except KafkaException as error:  # a fatal error of the idempotent producer: nothing will ever be sent again
            self._unanswered[sequence] = partition
            self._note(sequence, partition, -1, FAILED, error.args[0].name())
            self._stopping.set()
            return
        self._unanswered[sequence] = partition
        self.sent += 1

    def _note(self, sequence: int, partition: int, offset: int, outcome: str, error: str) -> None:
        if self._unanswered.pop(sequence, None) is None and outcome != ACKNOWLEDGED:
            return
        value, time_ms = f"{self.name}:{sequence}", int(time.time() * 1000)
        self._ledger.add(Entry(self.name, sequence, value, self._topic, partition, offset, outcome, error, time_ms))


class FollowingConsumer:
    """One consumer in a thread of its own: every partition from offset 0, what it is given kept by offset."""

    def __init__(self, name: str, bootstrap: str, topic: str, partitions: int) -> None:
        self.name = name
        self.seen = [array("q") for _ in range(partitions)]
        self.complaints: list[list[str]] = [[] for _ in range(partitions)]
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": f"verify-{name}",
                "group.id": f"verify-{name}",
                "enable.auto.commit": False,
                # Being told that an offset is out of range would mean that committed records went away.
                "auto.offset.reset": "error",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 20,
                **RETRY_SETTINGS,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    @property
    def count(self) -> int:
        """Records seen."""
        return sum(len(numbers) for numbers in self.seen)

    def has_read_to(self, ends: Sequence[int]) -> bool:
        """Whether it has seen everything up to these offsets."""
        return all(len(numbers) >= end for numbers, end in zip(self.seen, ends, strict=True))

    def stop(self, timeout_s: float) -> None:
        """Read no more."""
        self._stopping.set()
        self._thread.join(timeout_s)
        self._consumer.close()

    def seen_of(self, partition: int) -> Seen:
        """What the judge wants to know of one partition."""
        return Seen(self.name, self.seen[partition], self.complaints[partition])

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, 0.1):
                error = message.error()
                partition, offset = message.partition() or 0, message.offset() or 0
                if error is None:
                    self._take(partition, offset, number_of((message.value() or b"").decode()))
                elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION):
                    self.complaints[partition].append(f"told that committed records are gone: {error.str()}")

    def _take(self, partition: int, offset: int, number: int) -> None:
        numbers = self.seen[partition]
        if offset == len(numbers):
            numbers.append(number)
        elif offset > len(numbers):
            self.complaints[partition].append(f"offsets {len(numbers)} to {offset - 1} were left out")
            numbers.extend([-1] * (offset - len(numbers)))
            numbers.append(number)
        elif numbers[offset] != number:
            self.complaints[partition].append(f"two values at offset {offset}")


def read_final_log(bootstrap: str, topic: str, partitions: int, timeout_s: float) -> list[array[int]]:
    """Everything committed, read once more from the start by a client that knows nothing; TidelogError when late."""
    reader = FollowingConsumer("final reader", bootstrap, topic, partitions)
    deadline = time.monotonic() + timeout_s
    ends = end_offsets(bootstrap, topic, partitions, timeout_s)
    reader.start()
    try:
        while not reader.has_read_to(ends):
            if time.monotonic() > deadline:
                state = ", ".join(
                    f"{partition}: {len(numbers)} of {end}"
                    for partition, (numbers, end) in enumerate(zip(reader.seen, ends, strict=True))
                )
                raise TidelogError(f"the log could not be read to its end within {timeout_s:g} s ({state})")
            time.sleep(0.02)
    finally:
        reader.stop(10)
    return reader.seen


def end_offsets(bootstrap: str, topic: str, partitions: int, timeout_s: float) -> list[int]:
    """The high watermark of every partition."""
    asker = Consumer({"bootstrap.servers": bootstrap, "group.id": "verify-ends", **RETRY_SETTINGS})
    try:
        return [
            int(asker.get_watermark_offsets(TopicPartition(topic, partition), timeout_s)[1])
            for partition in range(partitions)
        ]
    finally:
        asker.close()
