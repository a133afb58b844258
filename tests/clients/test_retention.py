"""What is too old or too much goes by itself, whole segments from the start, and what stays is served."""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.support.nodes import Node
from tests.support.processes import wait_until

NODE_PROPERTIES = {"log.retention.check.interval.ms": "300", "log.segment.delete.delay.ms": "200"}
SEGMENT_BYTES = 1_048_576


def written(timestamp_ms: int) -> list[Record]:
    """Four segments' worth."""
    return [Record(None, b"%06d" % number + bytes(9_994), timestamp_ms) for number in range(400)]


def check_start_rises(node: Node, topic: str, expected_segments: int) -> None:
    """The log start rises until only so many segments are left on disk; what is left is read whole."""
    directory = node.data_directory / f"{topic}-0"
    wait_until(
        lambda: len(list(directory.glob("*.log"))) == expected_segments and not list(directory.glob("*.deleted")),
        60,
        f"{expected_segments} segments left in {directory}",
    )
    first = min(int(each.stem) for each in directory.glob("*.log"))
    with confluent.reading(node, [TopicPartition(topic, 0, first)]) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 60) == (first, 400)
        values = [each.value() for each in confluent.take(consumer, 400 - first)]
    assert values == [each.value for each in written(0)[first:]]


def test_a_topic_keeps_no_more_bytes_than_it_may(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(segment_bytes=str(SEGMENT_BYTES), retention_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    confluent.produce_all(node, topic, written(1_000), batch_size=50_000)
    check_start_rises(node, topic, expected_segments=2)


def test_a_topic_keeps_no_older_records_than_it_may(node: Node, make_topic: TopicMaker) -> None:
    now_ms = int(time.time() * 1000)
    topic = make_topic(segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    old, new = written(now_ms - 3_600_000), written(now_ms)
    confluent.produce_all(node, topic, old[:350] + new[350:], batch_size=50_000)
    # Only now: where segments begin depends on what was there when they were full.
    confluent.set_on_topic(node, topic, "retention.ms", "1800000")
    check_start_rises(node, topic, expected_segments=1)


def test_without_limits_everything_stays(node: Node, make_topic: TopicMaker) -> None:
    kept = make_topic(segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    limited = make_topic(segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
    for topic in (kept, limited):
        confluent.produce_all(node, topic, written(1_000), batch_size=50_000)
    confluent.set_on_topic(node, limited, "retention.bytes", "0")
    check_start_rises(node, limited, expected_segments=1)
    assert len(confluent.consume_all(node, kept, 400)) == 400
