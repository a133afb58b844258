"""A steady writer for failovers: a record every few milliseconds, and when each was acknowledged."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks.apart import Failed

EAGER: dict[str, Any] = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
"""A client that comes back soon: librdkafka's own defaults would hide how soon a cluster does. The same for all."""
PAUSE_S = 0.005


class SteadyWriter:
    """Idempotent, acks=all, linger 0, one partition; runs in a thread of its own until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._moments: list[float] = []
        self._failures: list[str] = []
        self._stopping = threading.Event()
        settings = {"acks": "all", "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 120_000}
        self._producer = Producer({"bootstrap.servers": bootstrap, **EAGER, **settings})
        self._first_offset = self.end_offset()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._moments.append(time.monotonic())
        else:
            self._failures.append(error.str())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._producer.produce(self._topic, value=b"x", partition=0, on_delivery=self._delivered)
            self._producer.poll(PAUSE_S)

    @property
    def acknowledged(self) -> int:
        """How many records so far."""
        return len(self._moments)

    def goes_on(self, since: float) -> bool:
        """Whether acknowledgements came for a whole second after some moment."""
        later = [moment for moment in self._moments[-2_000:] if moment > since]
        return len(later) > 50 and later[-1] - since > 1 and time.monotonic() - later[-1] < 0.2

    def longest_gap_s(self, since: float) -> float:
        """The longest time without an acknowledgement from a moment until now."""
        later = [moment for moment in list(self._moments) if moment > since]
        return max(after - before for before, after in pairwise([since, *later, time.monotonic()]))

    def end_offset(self) -> int:
        """The end of the partition's log."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "look", **EAGER})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(self._topic, 0), 60)[1])
        finally:
            consumer.close()

    def stop(self) -> None:
        """Write no more, and hold what was acknowledged against the log: nothing lost, nothing twice."""
        self._stopping.set()
        self._thread.join()
        if self._producer.flush(120):
            raise Failed("not everything was answered")
        stored = self.end_offset() - self._first_offset
        if self._failures or stored != self.acknowledged:
            raise Failed(f"{self.acknowledged} acknowledged, {stored} stored, failures: {self._failures[:3]}")
