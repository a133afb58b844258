"""The sources against Apache Kafka: the same tests, with its broker behind them and its files under them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.clients import confluent, samples
from tests.clients.conftest import make_topic
from tests.clients.samples import CODECS, Record
from tests.spark.reading import batch_reader, options_for, rows, stream_reader
from tests.spark.test_source_batch import (
    test_a_large_partition_is_split,
    test_a_topic_made_again_is_data_loss,
    test_deleted_offsets_are_data_loss,
    test_ranges_by_offset_and_by_time,
    test_small_fetches_read_the_same,
    test_topics_by_name_pattern_and_partition,
)
from tests.spark.test_source_stream import (
    test_a_batch_planned_again_after_a_restart_is_the_same,
    test_a_topic_made_again_is_data_loss_or_begins_anew,
    test_an_offset_is_the_official_sources_and_the_topics_id,
    test_available_now_ends_where_the_log_ended,
    test_limits_of_a_batch,
    test_partitions_and_topics_that_appear_later_are_read_from_their_first_record,
)
from tests.spark.test_source_transactions import (
    test_a_stream_of_committed_records_stops_before_an_open_transaction,
    test_what_a_reader_is_given_is_what_confluent_is_given,
    written,
)
from tests.support.nodes import KafkaNode, Node, passing_node
from tidelog.client import Client
from tidelog.client.groups import committed_offsets
from tidelog.spark.segments import SegmentsReader
from tidelog.spark.source_schema import segments_schema

__all__ = [
    "make_topic",
    "test_a_batch_planned_again_after_a_restart_is_the_same",
    "test_a_large_partition_is_split",
    "test_a_stream_of_committed_records_stops_before_an_open_transaction",
    "test_a_topic_made_again_is_data_loss",
    "test_a_topic_made_again_is_data_loss_or_begins_anew",
    "test_an_offset_is_the_official_sources_and_the_topics_id",
    "test_available_now_ends_where_the_log_ended",
    "test_deleted_offsets_are_data_loss",
    "test_limits_of_a_batch",
    "test_partitions_and_topics_that_appear_later_are_read_from_their_first_record",
    "test_ranges_by_offset_and_by_time",
    "test_small_fetches_read_the_same",
    "test_topics_by_name_pattern_and_partition",
    "test_what_a_reader_is_given_is_what_confluent_is_given",
    "written",
]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """Apache Kafka."""
    with passing_node(KafkaNode) as started:
        yield started


def test_every_codec_and_shape_from_the_broker_and_from_its_files(node: Node) -> None:
    confluent.create_topic(node, "shapes", len(CODECS))
    for partition, codec in enumerate(CODECS):
        confluent.produce_all(node, "shapes", samples.every_shape(), partition=partition, compression_type=codec)
    files = SegmentsReader(
        {"path": str(node.data_directory), "subscribe": "shapes", "upTo": "logEnd"}, segments_schema(), 2
    )
    from_files = [row for task in files.partitions() for batch in files.read(task) for row in batch.to_pylist()]
    for found in (rows(batch_reader(node, subscribe="shapes", includeHeaders="true")), from_files):
        by_partition: dict[int, list[Record]] = {}
        for row in found:
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            timestamp_ms = round(row["timestamp"].timestamp() * 1000)
            by_partition.setdefault(row["partition"], []).append(
                Record(row["key"], row["value"], timestamp_ms, headers)
            )
        assert by_partition == {partition: samples.every_shape() for partition in range(len(CODECS))}


def test_progress_is_committed_as_the_groups_offsets(node: Node) -> None:
    confluent.create_topic(node, "progress")
    confluent.produce_all(node, "progress", [Record(None, b"x", 1)] * 5)
    reader = stream_reader(node, subscribe="progress", startingOffsets="earliest", groupId="job")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    reader.commit(end)
    bootstrap = options_for(node)["kafka.bootstrap.servers"]
    with Client(bootstrap) as client:
        assert committed_offsets(client, "job")["progress", 0].offset == 5
