"""A few lines around confluent-kafka: make a topic, write records, read by assign."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.clients.samples import Record
from tests.support.nodes import Node
from tests.support.processes import wait_until

WAIT_S = 60.0


def admin(node: Node) -> AdminClient:
    """An admin client of the node."""
    return AdminClient({"bootstrap.servers": node.bootstrap})


def create_topic(node: Node, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
    """Make a topic and wait for the answer."""
    request = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
    client = admin(node)  # kept until the answer is there: a client that is collected drops what it waits for
    client.create_topics([request])[name].result(WAIT_S)
    if node.peer == "kafka":  # its broker learns a moment after its controller; ours must know when it answers
        wait_until(lambda: name in client.list_topics(timeout=WAIT_S).topics, WAIT_S, f"{name} is there")


def set_on_topic(node: Node, topic: str, name: str, value: str) -> None:
    """Change a setting of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(node)  # its calls end with it
    client.incremental_alter_configs([resource])[resource].result(WAIT_S)


def producer(node: Node, **settings: Any) -> Producer:
    """A producer; settings are librdkafka's with underscores for dots."""
    return Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 2} | dotted(settings))


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    """`fetch_min_bytes=1` as `fetch.min.bytes`."""
    return {name if name == "log_level" else name.replace("_", "."): value for name, value in settings.items()}


def produce_all(
    node: Node, topic: str, records: Iterable[Record], partition: int = 0, **settings: Any
) -> list[Message]:
    """Write records in order and return what was acknowledged, in the order of acknowledgement."""
    acknowledged: list[Message] = []
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message)
        else:
            failures.append(error)

    writer = producer(node, **settings)
    for record in records:
        writer.produce(
            topic,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            partition=partition,
            on_delivery=delivered,
        )
        writer.poll(0)
    assert writer.flush(WAIT_S) == 0, "not all records were acknowledged in time"
    if failures:
        raise KafkaException(failures[0])
    return acknowledged


@contextmanager
def reading(node: Node, assigned: Sequence[TopicPartition], **settings: Any) -> Iterator[Consumer]:
    """A consumer of exactly these partitions, closed at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "assigned-only",  # librdkafka wants one even where no group is used
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 10,
        }
        | dotted(settings)
    )
    try:
        consumer.assign(list(assigned))
        yield consumer
    finally:
        consumer.close()


def take(consumer: Consumer, count: int, timeout_s: float = WAIT_S) -> list[Message]:
    """Exactly `count` messages; an error from the broker is raised."""
    messages: list[Message] = []
    deadline = time.monotonic() + timeout_s
    while len(messages) < count:
        for message in consumer.consume(min(count - len(messages), 10_000), 0.2):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            messages.append(message)
        assert time.monotonic() < deadline, f"only {len(messages)} of {count} records came in {timeout_s} s"
    return messages


def consume_all(
    node: Node, topic: str, count: int, partition: int = 0, offset: int = 0, **settings: Any
) -> list[Message]:
    """Read `count` records of one partition from an offset on."""
    with reading(node, [TopicPartition(topic, partition, offset)], **settings) as consumer:
        return take(consumer, count)


def as_record(message: Message) -> Record:
    """What was read, in the form of what was written."""
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.key(), message.value(), message.timestamp()[1], headers)
