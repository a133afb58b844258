"""Consumers of a group in threads, and a register of who reads which partition: one at a time, or the test fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.clients.confluent import dotted
from tests.support.nodes import Node
from tests.support.processes import wait_until


class Register:
    """Who has which partition now, and what was read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.owners: dict[int, str] = {}
        self.read: Counter[tuple[int, int]] = Counter()
        """How often each (partition, offset) was read."""
        self.faults: list[str] = []
        self.revoked: Counter[str] = Counter()
        """Partitions taken from each reader."""

    def assigned(self, name: str, partitions: Sequence[TopicPartition]) -> None:
        with self._lock:
            for one in partitions:
                owner = self.owners.setdefault(one.partition, name)
                if owner != name:
                    self.faults.append(f"partition {one.partition} was given to {name} while {owner} had it")

    def gone(self, name: str, partitions: Sequence[TopicPartition]) -> None:
        with self._lock:
            for one in partitions:
                if self.owners.get(one.partition) == name:
                    del self.owners[one.partition]
                    self.revoked[name] += 1

    def shares(self) -> list[int]:
        """How many partitions each reader has, the fewest first."""
        with self._lock:
            return sorted(Counter(self.owners.values()).values())


class Reader:
    """One consumer in a thread of its own."""

    def __init__(self, node: Node, register: Register, name: str, topics: list[str], **settings: Any) -> None:
        self.name = name
        self._register = register
        self._stopping = threading.Event()
        self.consumer = Consumer(
            {
                "bootstrap.servers": node.bootstrap,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "client.id": name,
                "log_level": 0,
            }
            | dotted(settings)
        )
        self.consumer.subscribe(
            topics,
            on_assign=lambda _consumer, partitions: register.assigned(name, partitions),
            on_revoke=lambda _consumer, partitions: register.gone(name, partitions),
            on_lost=lambda _consumer, partitions: register.gone(name, partitions),
        )
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            committed = True
            while not self._stopping.is_set():
                for message in self.consumer.consume(100, 0.05):
                    if message.error() is None:
                        self._register.read[message.partition() or 0, message.offset() or 0] += 1
                        committed = False
                committed = committed or self._commit()
        finally:
            self.consumer.close()

    def _commit(self) -> bool:
        """Whether it is done: refused in the middle of a rebalance, it is tried again with what is still its own."""
        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError._NO_OFFSET)  # what it read is another's now
        return True

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), f"{self.name} does not end"


@contextmanager
def readers_of(node: Node, register: Register) -> Iterator[Any]:
    """Starts readers; all are stopped at the end, and no partition had two of them at a time."""
    started: list[Reader] = []

    def start(name: str, topics: list[str], **settings: Any) -> Reader:
        reader = Reader(node, register, name, topics, **settings)
        started.append(reader)
        return reader

    try:
        yield start
    finally:
        for reader in started:
            reader.stop()
    assert not register.faults, register.faults


def wait_for_shares(register: Register, shares: list[int], timeout_s: float = 60) -> None:
    """Until the partitions are shared out like this."""
    wait_until(lambda: register.shares() == shares, timeout_s, f"shares {shares}, but they are {register.shares()}")
