"""A topic against the lake it was landed in: confluent-kafka reads the log, Spark reads the lake."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from tests.clients import confluent
from tests.support.nodes import Node
from tidelog.spark.pipelines.lake import Lake

Place = tuple[str, int, int]


def in_the_log(node: Node, topic: str) -> dict[Place, bytes | None]:
    """Every record of a topic by its place, as librdkafka reads it."""
    asker = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "judge"})
    found: dict[Place, bytes | None] = {}
    try:
        for partition in asker.list_topics(topic, 30).topics[topic].partitions:
            first, end = asker.get_watermark_offsets(TopicPartition(topic, partition), 30)
            for message in confluent.consume_all(node, topic, end - first, partition, first) if end > first else ():
                found[topic, partition, message.offset() or 0] = message.value()
    finally:
        asker.close()
    return found


def places_in(table: DataFrame | None) -> Counter[Place]:
    """How often each place of a log is in a table."""
    if table is None:
        return Counter()
    return Counter(
        (row.topic, row.partition, row.offset) for row in table.select("topic", "partition", "offset").collect()
    )


def assert_landed_once(spark: SparkSession, node: Node, path: Path, *topics: str, table_format: str = "delta") -> None:
    """Every record of the topics is in the lake, records or quarantine, exactly once and with the bytes it has."""
    lake = Lake(str(path), table_format)
    records, quarantine = lake.read(spark, lake.records), lake.read(spark, lake.quarantine)
    landed = places_in(records) + places_in(quarantine)
    expected: dict[Place, bytes | None] = {}
    for topic in topics:
        expected |= in_the_log(node, topic)
    assert expected, "there is nothing to compare"
    lost = expected.keys() - landed.keys()
    twice = {place: count for place, count in landed.items() if count > 1}
    foreign = landed.keys() - expected.keys()
    assert (len(lost), twice, foreign) == (0, {}, set()), f"of {len(expected)}: lost {sorted(lost)[:5]}"
    if records is not None and "value" in records.columns:
        for row in records.select("topic", "partition", "offset", "value").collect():
            value = None if row.value is None else bytes(row.value)
            assert value == expected[row.topic, row.partition, row.offset]
