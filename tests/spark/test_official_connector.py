"""Spark's own Kafka connector reads and writes, batch and streaming, as with any Kafka cluster."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.clients import confluent, samples
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.support.nodes import Node


def read_batch(spark: SparkSession, node: Node, topic: str, **options: str) -> DataFrame:
    """All of a topic by the connector's batch source."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", node.bootstrap).option("subscribe", topic)
    return reader.options(includeHeaders="true", **options).load()


def test_a_batch_read_has_every_column(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=3)
    written = {partition: samples.every_shape() for partition in range(3)}
    for partition, codec in enumerate(("none", "zstd", "lz4")):
        confluent.produce_all(node, topic, written[partition], partition=partition, compression_type=codec)
    rows = read_batch(spark, node, topic).select(
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        f.expr("unix_millis(timestamp)").alias("timestamp_ms"),
        "timestampType",
        "headers",
    )
    found: dict[int, list[Record]] = {0: [], 1: [], 2: []}
    for row in sorted(rows.collect(), key=lambda each: (each.partition, each.offset)):
        assert row.offset == len(found[row.partition])
        assert (row.topic, row.timestampType) == (topic, 0)
        headers = tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers or ())
        key = None if row.key is None else bytes(row.key)
        value = None if row.value is None else bytes(row.value)
        found[row.partition].append(Record(key, value, row.timestamp_ms, headers))
    assert found == written


def test_a_batch_write_lands_whole(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    rows = spark.range(20_000).select(
        f.col("id").cast("string").alias("key"),
        f.concat(f.lit("value-"), f.col("id")).alias("value"),
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", node.bootstrap).option("topic", topic).save()
    back = read_batch(spark, node, topic).selectExpr("cast(key as string) key", "cast(value as string) value")
    assert back.exceptAll(rows).count() == 0
    assert back.count() == 20_000


def test_a_batch_read_between_offsets_and_from_a_time(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, [Record(None, b"%d" % each, 1_000_000 + each) for each in range(1_000)])
    between = read_batch(
        spark,
        node,
        topic,
        startingOffsets=json.dumps({topic: {"0": 100}}),
        endingOffsets=json.dumps({topic: {"0": 250}}),
    )
    assert [row.offset for row in between.orderBy("offset").collect()] == list(range(100, 250))
    later = read_batch(spark, node, topic, startingOffsetsByTimestamp=json.dumps({topic: {"0": 1_000_900}}))
    assert later.count() == 100


def test_a_stream_goes_from_topic_to_topic_and_goes_on_where_it_stopped(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)

    def run_once() -> None:
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", node.bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "1500")
            .load()
            .selectExpr("key", "upper(cast(value as string)) as value")
        )
        query = (
            stream.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", node.bootstrap)
            .option("topic", sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300), "the stream did not end"
        assert query.exception() is None

    for turn in range(2):
        for partition in range(2):
            records = [Record(b"%d" % turn, b"turn %d number %d" % (turn, each), 1) for each in range(1_000)]
            confluent.produce_all(node, source, records, partition=partition)
        run_once()
        landed = [
            row.value for row in read_batch(spark, node, sink).selectExpr("cast(value as string) value").collect()
        ]
        expected = [f"TURN {each} NUMBER {number}" for each in range(turn + 1) for number in range(1_000)] * 2
        assert sorted(landed) == sorted(expected)


def test_a_running_stream_sees_new_records(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("cast(value as string) value")
    )
    query = stream.writeStream.format("memory").queryName("seen").trigger(processingTime="200 milliseconds").start()
    try:
        for number in range(3):
            confluent.produce_all(node, topic, [Record(None, b"%d" % number, 1)])
            query.processAllAvailable()
            assert [row.value for row in spark.table("seen").orderBy("value").collect()] == [
                str(each) for each in range(number + 1)
            ]
    finally:
        query.stop()
