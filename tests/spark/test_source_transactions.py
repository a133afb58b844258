"""Aborted records stay out for readers of committed ones: from the broker and its files, as confluent-kafka has it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.clients.conftest import TopicMaker
from tests.spark.reading import batch_reader, rows, stream_reader
from tests.support.nodes import Node
from tests.support.processes import wait_until
from tidelog.spark.segments import SegmentsReader
from tidelog.spark.source_schema import segments_schema
from tidelog.spark.source_stream import offsets_of

WAIT_S = 60


@pytest.fixture
def written(node: Node, make_topic: TopicMaker) -> str:
    """A topic with plain, committed and aborted records between each other, and an open transaction at its end."""
    topic = make_topic()
    plain = Producer({"bootstrap.servers": node.bootstrap, "acks": "all"})
    writers = []
    for name in ("first", "second"):
        writer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": f"{topic}-{name}"})
        writer.init_transactions(WAIT_S)
        writers.append(writer)
    for turn in range(6):
        for number, writer in enumerate(writers):
            writer.begin_transaction()
            for each in range(20):
                writer.produce(topic, b"%d-%d-%d" % (number, turn, each), partition=0)
            writer.flush(WAIT_S)
        plain.produce(topic, b"plain-%d" % turn, partition=0)
        plain.flush(WAIT_S)
        for number, writer in enumerate(writers):
            if (turn + number) % 3 == 0:
                writer.abort_transaction(WAIT_S)
            else:
                writer.commit_transaction(WAIT_S)
    places: list[int | None] = []
    writers[0].begin_transaction()
    writers[0].produce(topic, b"open", partition=0, on_delivery=lambda _, message: places.append(message.offset()))
    writers[0].flush(WAIT_S)
    plain.produce(topic, b"behind the open one", partition=0)
    plain.flush(WAIT_S)
    # Apache Kafka answers an abort before its marker is written.
    asker = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "judge", "isolation.level": "read_committed"})
    where = TopicPartition(topic, 0)
    wait_until(lambda: asker.get_watermark_offsets(where, WAIT_S)[1] == places[0], WAIT_S, "only one is open")
    asker.close()
    return topic


def by_confluent(node: Node, topic: str, isolation: str) -> list[tuple[int, bytes]]:
    """Offset and value of every record that a consumer with this isolation level is given."""
    settings = {"group.id": "judge", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "auto.offset.reset": "earliest"} | settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error() is not None:
            break  # the end of the partition
        found.append((message.offset(), message.value()))
    consumer.close()
    return found


def places(found: list[dict[str, Any]]) -> list[tuple[int, bytes]]:
    return [(row["offset"], row["value"]) for row in found]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_a_reader_is_given_is_what_confluent_is_given(node: Node, written: str, isolation: str) -> None:
    wanted = by_confluent(node, written, isolation)
    assert (b"open" in dict(wanted).values()) == (isolation == "read_uncommitted")
    level = {"kafka_isolation_level": isolation}
    assert places(rows(batch_reader(node, subscribe=written, **level))) == wanted
    split = {"minPartitions": "9", "kafka_fetch_max_bytes": "500"}
    assert places(rows(batch_reader(node, subscribe=written, **split, **level))) == wanted, "cut inside transactions"
    files = SegmentsReader(
        {"path": str(node.data_directory), "subscribe": written, "upTo": "logEnd", "kafka.isolation.level": isolation},
        segments_schema(),
        2,
    )
    found = [row for task in files.partitions() for batch in files.read(task) for row in batch.to_pylist()]
    assert places(found) == wanted


def test_a_stream_of_committed_records_stops_before_an_open_transaction(node: Node, written: str) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    reader = stream_reader(node, subscribe=written, startingOffsets="earliest", kafka_isolation_level="read_committed")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    everything = by_confluent(node, written, "read_uncommitted")
    assert offsets_of(end)[written, 0] == next(offset for offset, value in everything if value == b"open")
