"""`land` on a real node and a real Spark: what is in the log is in the lake, once."""

from __future__ import annotations

import json
import random
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.spark.lakes import assert_landed_once
from tests.support.nodes import Node
from tidelog.spark.pipelines import lake, land
from tidelog.spark.pipelines.declaration import Outcome
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.lake import Lake
from tidelog.spark.pipelines.progress import Silent, Step


class Kept(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.said: list[str] = []

    def show(self, step: Step) -> None:
        self.steps.append(step)

    def say(self, line: str) -> None:
        self.said.append(line)


def land_once(spark: SparkSession, node: Node, path: Path, progress: Any = None, **options: Any) -> Outcome:
    given = {"bootstrap": node.bootstrap, "path": str(path), "once": True, **options}
    return land.run(spark, land.PIPELINE.options_of(**given), progress or Silent())


def write(node: Node, topic: str, *values: bytes | None, partition: int = 0) -> None:
    confluent.produce_all(
        node, topic, [Record(b"k", value, 1_763_200_000_000) for value in values], partition=partition
    )


def test_what_is_in_the_log_is_in_the_lake_and_a_second_run_adds_only_what_is_new(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, progress = make_topic(partitions=2), Kept()
    for partition in range(2):
        write(node, topic, *(b"%d" % number for number in range(500)), partition=partition)
    outcome = land_once(spark, node, tmp_path / "lake", progress, topics=topic, max_records=400)
    assert (outcome.ok, outcome.details["records"]) == (True, 1_000)
    assert_landed_once(spark, node, tmp_path / "lake", topic)
    assert progress.steps[-1].total == progress.steps[-1].done == 1_000
    assert (progress.steps[-1].lag, progress.steps[-1].batches) == (0, 3)
    write(node, topic, b"late", None)
    assert land_once(spark, node, tmp_path / "lake", topics=topic).details["records"] == 2
    assert_landed_once(spark, node, tmp_path / "lake", topic)
    folders = {each.name for each in (tmp_path / "lake" / "records").iterdir() if each.is_dir()}
    assert folders == {"_delta_log", f"topic={topic}"}
    assert {each.name for each in (tmp_path / "lake" / "records" / f"topic={topic}").iterdir()} == {"day=2025-11-15"}


def test_a_batch_that_is_repeated_is_recognised(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """A driver that dies between the table's commit and the stream's own repeats the batch when it comes back."""
    topic, path = make_topic(), tmp_path / "lake"
    schema = tmp_path / "schema"
    schema.write_text("n bigint")
    write(node, topic, b'{"n": 1}', b"bad")
    options = {"topics": topic, "values": "json", "schema": str(schema)}
    land_once(spark, node, path, **options)
    commits = path / "_state" / "checkpoint" / "commits"
    (commits / "0").unlink()
    (commits / ".0.crc").unlink(missing_ok=True)
    write(node, topic, b'{"n": 2}')
    land_once(spark, node, path, **options)
    assert_landed_once(spark, node, path, topic)
    quarantine = Lake(str(path)).read(spark, str(path / "quarantine"))
    assert quarantine is not None
    assert [(row.offset, bytes(row.value), row.reason) for row in quarantine.collect()] == [(1, b"bad", "not JSON")]


def test_parquet_by_sparks_own_sink_with_its_quarantine(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path = make_topic(), tmp_path / "lake"
    schema = tmp_path / "schema"
    schema.write_text("n bigint")
    options = {"topics": topic, "values": "json", "schema": str(schema), "format": "parquet"}
    for value in (b'{"n": 1}', b"bad"):
        write(node, topic, value)
        land_once(spark, node, path, **options)
    assert_landed_once(spark, node, path, topic, table_format="parquet")


def test_records_that_were_deleted_before_they_were_landed(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path = make_topic(), tmp_path / "lake"
    write(node, topic, *(b"%d" % number for number in range(30)))
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 20)]).values()
    deleted.result(60)
    options = {"topics": topic, "starting_offsets": json.dumps({topic: {"0": 3}})}
    # This is the first batch, and it fails: the next run finds the beginnings of a table.
    with pytest.raises(PipelineError, match=r"offsets 3 to 19 were deleted; .*; --accept-loss goes on without them$"):
        land_once(spark, node, path, **options)
    assert land_once(spark, node, path, **options, accept_loss=True).details["records"] == 10
    assert_landed_once(spark, node, path, topic)


def test_small_files_are_joined_and_the_rows_stay(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path, progress = make_topic(), tmp_path / "lake", Kept()
    write(node, topic, *(b"%d" % number for number in range(60)))
    land_once(spark, node, path, progress, topics=topic, max_records=20, optimize_every=3)
    assert progress.said == ["OPTIMIZE: 3 small files are now 1"]
    assert lake.file_count(spark, str(path / "records")) == 1
    assert_landed_once(spark, node, path, topic)


def test_topics_that_come_later_are_landed_too(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    first = make_topic()
    write(node, first, b"1")
    options = {"pattern": f"{first}.*"}
    land_once(spark, node, tmp_path / "lake", **options)
    second = make_topic()
    write(node, second, b"2")
    land_once(spark, node, tmp_path / "lake", **options)
    assert_landed_once(spark, node, tmp_path / "lake", first, second)


def test_a_table_without_its_checkpoint_and_a_checkpoint_without_its_table_are_refused(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path = make_topic(), tmp_path / "lake"
    write(node, topic, b"1")
    land_once(spark, node, path, topics=topic)
    shutil.copytree(path, tmp_path / "other")
    shutil.rmtree(path / "_state")
    with pytest.raises(PipelineError, match="landed a second time"):
        land_once(spark, node, path, topics=topic)
    shutil.rmtree(tmp_path / "other" / "records")
    with pytest.raises(PipelineError, match="is gone: they would be left out"):
        land_once(spark, node, tmp_path / "other", topics=topic)


@pytest.mark.parametrize("table_format", ["delta", "parquet"])
def test_an_older_copy_of_the_checkpoint_or_of_the_table_is_refused(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path, table_format: str
) -> None:
    """The next batch of an old checkpoint has a number that the table knows: its records would be left out."""
    topic, path, before = make_topic(), tmp_path / "lake", tmp_path / "before"
    write(node, topic, b"1")
    land_once(spark, node, path, topics=topic, format=table_format)
    shutil.copytree(path, before)
    write(node, topic, b"2")
    land_once(spark, node, path, topics=topic, format=table_format)
    for part in ("_state", "records"):
        shutil.copytree(path, tmp_path / part)
        shutil.rmtree(tmp_path / part / part)
        shutil.copytree(before / part, tmp_path / part / part)
    with pytest.raises(PipelineError, match=r"is an older copy: it knows of batch 0, and .*records has batch 1"):
        land_once(spark, node, tmp_path / "_state", topics=topic, format=table_format)
    with pytest.raises(PipelineError, match=r"up to batch 1, but .*records has none after batch 0: they would be left"):
        land_once(spark, node, tmp_path / "records", topics=topic, format=table_format)


def test_a_schema_that_changed_is_refused_and_the_old_one_goes_on(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path, schema = make_topic(), tmp_path / "lake", tmp_path / "schema"
    options = {"topics": topic, "values": "json", "schema": str(schema)}
    schema.write_text("n bigint")
    write(node, topic, b'{"n": 1}')
    land_once(spark, node, path, **options)
    write(node, topic, json.dumps({"n": "two", "more": 1}).encode(), b'{"n": 3, "more": 3}')
    schema.write_text("n string")
    with pytest.raises(PipelineError, match=r"data\.n is bigint in the table and string now"):
        land_once(spark, node, path, **options)
    schema.write_text("n bigint, more bigint")
    progress = Kept()
    land_once(spark, node, path, progress, **options)
    assert progress.said == ["the table gets a new column: data.more"]
    assert_landed_once(spark, node, path, topic)
    table = Lake(str(path)).read(spark, str(path / "records"))
    assert table is not None
    assert [tuple(row.data) for row in table.orderBy("offset").collect()] == [(1, None), (3, 3)]


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, path, noise = make_topic(), tmp_path / "lake", random.Random(3)
    write(node, topic, *(b"%d" % number for number in range(100)))
    land_once(spark, node, path, topics=topic)
    write(node, topic, *(noise.randbytes(10_000) for _ in range(100)))
    assert SparkContext._gateway is not None
    java = SparkContext._gateway.proc.pid
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    # A limit on the size of a file stands for a full disk: the write fails half way.
    resource.prlimit(java, resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(PipelineError, match=f"the disk is full under {path}; nothing is lost: start it again"):
            land_once(spark, node, path, topics=topic)
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)
    assert land_once(spark, node, path, topics=topic).details["records"] == 100
    assert_landed_once(spark, node, path, topic)


def test_a_missing_topic_and_a_cluster_that_is_away_are_one_line(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    with pytest.raises(PipelineError, match=f"no topic '{topic}s'; did you mean '{topic}'"):
        land_once(spark, node, tmp_path / "lake", topics=f"{topic}s")
    monkeypatch.setattr("tidelog.spark.pipelines.cluster.REACH_MS", 1_000)
    with pytest.raises(PipelineError, match=r"no broker of 127\.0\.0\.1:1 could be reached for 1 s.*refused"):
        land_once(spark, node, tmp_path / "lake", topics=topic, bootstrap="127.0.0.1:1")
