"""How soon after its process is started a node has stored a record."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from confluent_kafka import KafkaError, Message, Producer

from benchmarks import administration
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

IMPATIENT: dict[str, Any] = {
    "acks": "all",
    "linger.ms": 0,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 10,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 10,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "message.timeout.ms": 120_000,
    "log_level": 0,
}


def seconds_to_first_record(node: Node, topic: str, partition: int = 0) -> float:
    """Start the node's process and write one record; time from before the start until the acknowledgement."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": node.bootstrap} | IMPATIENT)
    started_s = time.perf_counter()
    node.launch()
    producer.produce(topic, value=b"first", partition=partition, on_delivery=delivered)
    left = producer.flush(120)
    seconds = time.perf_counter() - started_s
    if left or failures:
        raise node.running.fail(f"the first record was not stored: {failures}")
    return seconds


class StartUp(Benchmark[Node]):
    """A formatted directory with one topic, after a clean stop."""

    name: ClassVar[str] = "start-up"
    title: ClassVar[str] = "Process start to first acknowledged record"
    method: ClassVar[str] = (
        "A formatted directory with one topic, stopped cleanly before. Time from before the process is started until a"
        " waiting producer (confluent-kafka, reconnecting every 5–10 ms) has its first record acknowledged, acks=all."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("seconds", "process start to first acknowledged record", "s", at_most=0.7, ratio_at_most=0.2),
    )
    keeps_node: ClassVar[bool] = False

    def prepare(self, node: Node) -> None:
        """The topic."""
        administration.create_topic(node, "start", 1)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """One start and a clean stop."""
        seconds = seconds_to_first_record(node, "start")
        node.stop()
        return {"seconds": seconds}
