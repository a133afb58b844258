"""Compacted topics as tests look at them: how far they are cleaned, all that is left, the last value of each key."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition

from tests.clients import confluent
from tests.clients.samples import Record
from tests.support.nodes import Node
from tidelog.log import checkpoints
from tidelog.runtime.files import DirectoryStorage

WAIT_S = 60.0


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(key, value, int(time.time() * 1000))


def cleaned_to(node: Node, topic: str, partition: int = 0) -> int:
    """What the node's checkpoint says, in Kafka's own format."""
    storage = DirectoryStorage(str(node.data_directory))
    return checkpoints.read(storage, checkpoints.CLEANER_OFFSETS).get((topic, partition), 0)


def read_all(node: Node, topic: str) -> list[Message]:
    """Everything in partition 0, however many records that are."""
    messages: list[Message] = []
    with confluent.reading(node, [TopicPartition(topic, 0, OFFSET_BEGINNING)], enable_partition_eof=True) as consumer:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    messages.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return messages
                else:
                    raise KafkaException(error)
    raise AssertionError(f"the end of {topic} was not reached")


def last_values(messages: list[Message]) -> dict[bytes, bytes]:
    known = {message.key(): message.value() for message in messages}
    return {key: value for key, value in known.items() if key is not None and value is not None}
