"""The driver of `land` is killed between the table's commit and the stream's own: nothing is lost, nothing is twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.spark.killing import committed_batch, kill_when, planned_batch, start_land, table_version
from tests.spark.lakes import assert_landed_once
from tests.support.nodes import Node
from tidelog.spark.pipelines import land
from tidelog.spark.pipelines.progress import Silent


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_exactly_where_it_was(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path = make_topic(partitions=2), tmp_path / "lake"
    schema = tmp_path / "schema"
    schema.write_text("n bigint")
    for partition in range(2):
        values = [b'{"n": %d}' % number if number % 7 else b"bad %d" % number for number in range(600)]
        confluent.produce_all(node, topic, [Record(None, value, 1) for value in values], partition=partition)
    options = {"values": "json", "schema": str(schema), "max_records": 200, "optimize_every": 2}
    words = ["--values", "json", "--schema", str(schema), "--max-records", "200", "--optimize-every", "2"]
    driver = start_land(node, topic, path, *words)

    def is_between_the_commits() -> bool:
        return 1 <= table_version(path) > committed_batch(path) < planned_batch(path)

    kill_when(driver, is_between_the_commits, "a second batch is in the table, and the stream does not know it yet")
    given = {"bootstrap": node.bootstrap, "topics": topic, "path": str(path), "once": True, **options}
    outcome = land.run(spark, land.PIPELINE.options_of(**given), Silent())
    assert outcome.ok
    assert_landed_once(spark, node, path, topic)
