"""A client that only does what is right, beside whatever else happens to a node, and remembers every complaint."""

from __future__ import annotations

import threading
import time
import traceback
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.support.nodes import Node

ROUND_LIMIT_S = 60.0
RECORDS_A_ROUND = 25


class HealthyClient:
    """Writes, reads back and compares in a thread of its own until the block is left."""

    def __init__(self, node: Node, topic: str) -> None:
        self.topic = topic
        self.rounds = 0
        self.slowest_round_s = 0.0
        self.complaints: list[str] = []
        settings = {"bootstrap.servers": node.bootstrap, "error_cb": self._complain}
        self._producer = Producer(settings | {"enable.idempotence": True, "linger.ms": 0, "log_level": 0})
        self._consumer = Consumer(
            settings | {"group.id": "healthy", "enable.auto.commit": False, "fetch.wait.max.ms": 50, "log_level": 0}
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._written = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _complain(self, error: KafkaError) -> None:
        # A FindCoordinator that is not answered yet is no failure of a reader that uses no group.
        if error.code() != KafkaError._RESOLVE and "coordinator" not in error.str().lower():
            self.complaints.append(f"round {self.rounds}: {error.name()}: {error.str()}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.complaints.append(f"round {self.rounds}: not stored: {error.str()}")

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and not self.complaints:
                started_s = time.monotonic()
                self._round(started_s + ROUND_LIMIT_S)
                self.slowest_round_s = max(self.slowest_round_s, time.monotonic() - started_s)
                self.rounds += 1
        except Exception:
            self.complaints.append(traceback.format_exc())

    def _round(self, deadline_s: float) -> None:
        expected = [b"healthy %d" % (self._written + number) for number in range(RECORDS_A_ROUND)]
        for value in expected:
            self._producer.produce(self.topic, value=value, partition=0, on_delivery=self._delivered)
        if self._producer.flush(ROUND_LIMIT_S):
            self.complaints.append(f"round {self.rounds}: not acknowledged within {ROUND_LIMIT_S} s")
            return
        read: list[bytes | None] = []
        while len(read) < len(expected):
            for message in self._consumer.consume(len(expected) - len(read), 0.2):
                error = message.error()
                if error is not None:
                    self.complaints.append(f"round {self.rounds}: not read: {error.str()}")
                    return
                read.append(message.value())
            if time.monotonic() > deadline_s:
                self.complaints.append(f"round {self.rounds}: {len(read)} of {len(expected)} read in time")
                return
        if read != expected:
            self.complaints.append(f"round {self.rounds}: read {read} instead of {expected}")
        self._written += len(expected)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(ROUND_LIMIT_S * 3)
        self._producer.flush(60)
        self._consumer.close()
