"""`spark.read.format("tidelog")`: every shape of record, every way to say a range, and clear words where it fails."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, LongType, StructType

from tests.clients import confluent, samples
from tests.clients.conftest import TopicMaker
from tests.clients.samples import CODECS, Record
from tests.spark.reading import batch_reader, offsets, options_for, rows
from tests.support.nodes import Node
from tests.support.ports import free_ports
from tests.support.processes import wait_until
from tidelog.errors import ConfigError, KafkaError
from tidelog.spark.fetching import DataLossError, OffsetRange
from tidelog.spark.source_ranges import plan_tasks

NODE_PROPERTIES = {"log.cleaner.backoff.ms": "200"}


def numbered(node: Node, topic: str, count: int, partition: int = 0, first_ms: int = 1_700_000_000_000) -> None:
    """Records with the values 0, 1, 2 ... and a second between two."""
    records = [Record(None, b"%d" % number, first_ms + number * 1000) for number in range(count)]
    confluent.produce_all(node, topic, records, partition=partition)


def test_all_columns_on_a_real_spark(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    """Beside the official source on the same topic: the same rows, row by row."""
    topic = make_topic(partitions=len(CODECS))
    for partition, codec in enumerate(CODECS):
        confluent.produce_all(node, topic, samples.every_shape(), partition=partition, compression_type=codec)

    def read(name: str) -> Any:
        options = options_for(node, subscribe=topic, includeHeaders="true")
        return spark.read.format(name).options(**options).load()

    ours, official = read("tidelog"), read("kafka")
    assert [(each.name, each.dataType) for each in ours.schema] == [
        (each.name, each.dataType) for each in official.schema
    ]
    found, wanted = (
        {(row.partition, row.offset): row for row in frame.withColumn("ms", f.unix_millis("timestamp")).collect()}
        for frame in (ours, official)
    )
    assert len(found) == len(CODECS) * len(samples.every_shape())
    assert found == wanted


def test_a_narrower_schema_on_a_real_spark(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    numbered(node, topic, 20)
    frame = (
        spark.read.format("tidelog").schema("offset long, value binary").options(**options_for(node, subscribe=topic))
    )
    assert [(row.offset, bytes(row.value)) for row in frame.load().sort("offset").collect()] == [
        (number, b"%d" % number) for number in range(20)
    ]


def test_a_query_that_fails_says_why(spark: SparkSession, node: Node) -> None:
    with pytest.raises(PySparkException, match="unknown option startingofset, did you mean startingOffsets"):
        spark.read.format("tidelog").options(**options_for(node, subscribe="a", startingOfset="1")).load()
    with pytest.raises(PySparkException, match="has no topic 'nobody-made-this'"):
        spark.read.format("tidelog").options(**options_for(node, subscribe="nobody-made-this")).load().collect()


# --- without Spark: the same readers in this process ---


def test_ranges_by_offset_and_by_time(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    for partition in range(2):
        numbered(node, topic, 100, partition)
    start, end = json.dumps({topic: {"0": 10, "1": -2}}), json.dumps({topic: {"0": 12, "1": 3}})
    found = rows(batch_reader(node, subscribe=topic, startingOffsets=start, endingOffsets=end))
    assert offsets(found) == {0: [10, 11], 1: [0, 1, 2]}
    found = rows(
        batch_reader(node, subscribe=topic, startingTimestamp="1700000097500", endingTimestamp="1700000098000")
    )
    assert offsets(found) == {}
    found = rows(batch_reader(node, subscribe=topic, startingTimestamp="1700000097500"))
    assert offsets(found) == {0: [98, 99], 1: [98, 99]}
    start = json.dumps({topic: {"0": 1_700_000_098_001, "1": 1_700_000_200_000}})
    with pytest.raises(ConfigError, match="-1 has no record at or after the starting timestamp 1700000200000"):
        rows(batch_reader(node, subscribe=topic, startingOffsetsByTimestamp=start))
    found = rows(
        batch_reader(
            node,
            subscribe=topic,
            startingOffsetsByTimestamp=start,
            startingOffsetsByTimestampStrategy="latest",
        )
    )
    assert offsets(found) == {0: [99]}


def test_topics_by_name_pattern_and_partition(node: Node, make_topic: TopicMaker) -> None:
    first, second = make_topic(partitions=2), make_topic()
    for topic, partition in ((first, 0), (first, 1), (second, 0)):
        numbered(node, topic, 3, partition)

    def found(**given: str) -> set[tuple[str, int]]:
        return {(row["topic"], row["partition"]) for row in rows(batch_reader(node, **given))}

    assert found(subscribe=f"{first}, {second}") == {(first, 0), (first, 1), (second, 0)}
    assert found(subscribePattern=f"{first}(-1)?") == {(first, 0), (first, 1), (second, 0)}
    assert found(subscribePattern=first[:-1]) == set(), "a pattern is matched as a whole"
    assert found(assign=json.dumps({first: [1], second: [0]})) == {(first, 1), (second, 0)}
    with pytest.raises(ConfigError, match="has partitions 0 to 1, not 2"):
        found(assign=json.dumps({first: [2]}))
    with pytest.raises(ConfigError, match=f"has no topic '{first}x', did you mean '{first}'"):
        found(subscribe=f"{first}x")
    with pytest.raises(ConfigError, match=f"says nothing of {first}-1: it must name all partitions"):
        found(subscribe=first, startingOffsets=json.dumps({first: {"0": 1}}))


def test_a_large_partition_is_split(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    numbered(node, topic, 1000)
    reader = batch_reader(node, subscribe=topic, minPartitions="7")
    tasks = reader.partitions()
    assert len(tasks) >= 7
    assert [row["offset"] for row in rows(reader, tasks)] == list(range(1000))
    reader = batch_reader(node, subscribe=topic, maxRecordsPerPartition="300")
    sizes = [len(rows(reader, [task])) for task in reader.partitions()]
    assert sum(sizes) == 1000
    assert max(sizes) <= 300


def test_plans_use_all_cores_and_share_tasks() -> None:
    def plan(*sizes: int, **given: Any) -> list[list[int]]:
        ranges = [OffsetRange("t", number, 5, 5 + size) for number, size in enumerate(sizes)]
        asked = {"parallelism": 2, "min_partitions": None, "max_records": None} | given
        return [[each.size for each in task.ranges] for task in plan_tasks(ranges, **asked)]

    assert plan(1_200_000) == [[200_000]] * 6
    assert plan(300_000, 300_000, 300_000) == [[150_000]] * 6, "three partitions on two cores: no core waits"
    uneven = plan(834_000, 833_000, 833_000)
    assert len(uneven) == 6, "a few records more in one partition: still as many tasks for one core as for the other"
    assert plan(10, 0, 20) == [[10, 20]]
    assert plan(*[4000] * 10) == [[4000, 4000]] * 5
    assert plan(900_000, 10, min_partitions=2) == [[450_000], [450_000], [10]]
    assert plan() == []


def test_small_fetches_read_the_same(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, samples.every_shape())
    numbered(node, topic, 500)
    whole = rows(batch_reader(node, subscribe=topic, includeHeaders="true"))
    small = rows(
        batch_reader(node, subscribe=topic, includeHeaders="true", kafka_fetch_max_bytes="3000", minPartitions="3")
    )
    assert small == whole
    assert len(whole) == len(samples.every_shape()) + 500


def test_log_append_time_and_compacted_gaps(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="300",
        message_timestamp_type="LogAppendTime",
    )
    begun_ms = int(time.time() * 1000)
    for turn in range(6):
        records = [Record(b"key-%d" % (number % 5), b"%d-%d" % (turn, number), 1) for number in range(50)]
        confluent.produce_all(node, topic, records)
        time.sleep(0.35)  # segment.ms: the next record rolls the segment, which the cleaner may then take
    reader = batch_reader(node, subscribe=topic)
    wait_until(lambda: len(rows(reader)) < 200, 60, "the cleaner has run")
    found = rows(reader)
    assert [row["offset"] for row in found] == sorted({row["offset"] for row in found})
    last = {row["key"]: row["value"] for row in found}
    assert last == {b"key-%d" % number: b"5-%d" % (45 + number) for number in range(5)}
    assert {row["timestampType"] for row in found} == {1}
    assert all(row["timestamp"].timestamp() * 1000 >= begun_ms for row in found)


def test_deleted_offsets_are_data_loss(node: Node, make_topic: TopicMaker, capsys: pytest.CaptureFixture[str]) -> None:
    topic = make_topic()
    numbered(node, topic, 50)
    reader = batch_reader(node, subscribe=topic)
    patient = batch_reader(node, subscribe=topic, failOnDataLoss="false")
    tasks, patient_tasks = reader.partitions(), patient.partitions()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 20)])[TopicPartition(topic, 0)].result(60)
    with pytest.raises(DataLossError, match=f"{topic}-0: data loss: offsets 0 to 19 were deleted; .* starts at 20"):
        rows(reader, tasks)
    assert offsets(rows(patient, patient_tasks)) == {0: list(range(20, 50))}
    beyond = json.dumps({topic: {"0": 900}})
    with pytest.raises(DataLossError, match="ends at 50, before the offset 900 where reading was to begin"):
        rows(batch_reader(node, subscribe=topic, startingOffsets=beyond))
    assert not rows(batch_reader(node, subscribe=topic, startingOffsets=beyond, failOnDataLoss="false"))
    start = json.dumps({topic: {"0": 3}})
    with pytest.raises(DataLossError, match="starts at 3 but its records before 20 were deleted"):
        batch_reader(node, subscribe=topic, startingOffsets=start).partitions()
    found = rows(batch_reader(node, subscribe=topic, startingOffsets=start, failOnDataLoss="false"))
    assert offsets(found) == {0: list(range(20, 50))}
    told = f"data loss: {topic}-0 starts at 3 but its records before 20 were deleted; going on"
    assert told in capsys.readouterr().err
    end = json.dumps({topic: {"0": 60}})
    with pytest.raises(DataLossError, match="ends at 50, before the offset 60"):
        batch_reader(node, subscribe=topic, endingOffsets=end).partitions()


def test_a_topic_made_again_is_data_loss(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    numbered(node, topic, 30)
    reader = batch_reader(node, subscribe=topic)
    tasks = reader.partitions()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, 60, "the topic is gone")
    confluent.create_topic(node, topic)
    numbered(node, topic, 40)
    with pytest.raises(DataLossError, match="was deleted and created again under the same name"):
        rows(reader, tasks)


def test_unreachable_brokers_are_named_with_why_and_how_long() -> None:
    port = free_ports(1)[0]

    class Nowhere:
        bootstrap = f"127.0.0.1:{port}"

    reader = batch_reader(Nowhere(), subscribe="a", kafka_default_api_timeout_ms="400")  # type: ignore[arg-type]
    with pytest.raises(KafkaError, match=rf"servers=127.0.0.1:{port}.*connection refused.*\(\d+ ms\)"):
        reader.partitions()


def test_an_empty_topic_is_an_empty_read(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    assert spark.read.format("tidelog").options(**options_for(node, subscribe=topic)).load().count() == 0
    schema = StructType().add("value", BinaryType()).add("offset", LongType())
    assert rows(batch_reader(node, schema, subscribe=topic)) == []
