"""`land` killed again and again, at every step of a batch that its files tell of, and at drawn moments."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.soak.test_spark_sink import StandaloneSpark, standalone
from tests.spark.conftest import make_topic, node, scratch, spark
from tests.spark.killing import committed_batch, kill_when, planned_batch, start_land, table_version
from tests.spark.lakes import assert_landed_once
from tests.support.nodes import Node
from tests.support.processes import ManagedProcess, wait_until
from tidelog.spark.pipelines import jars, land

__all__ = ["make_topic", "node", "scratch", "spark", "standalone"]

WORDS = ["--max-records", "150", "--optimize-every", "3"]


def the_first_batch_is_being_written(path: Path, before: int) -> bool:
    """There is a folder for the log of the table, and nothing in it."""
    del before
    return (path / "records" / "_delta_log").exists() and table_version(path) < 0


def a_batch_is_planned(path: Path, before: int) -> bool:
    return planned_batch(path) > before


def quarantine_is_written(path: Path, before: int) -> bool:
    """The batch's bad records are in their table, its good ones not yet."""
    del before
    return table_version(path, "quarantine") > max(table_version(path), committed_batch(path))


def the_table_is_written(path: Path, before: int) -> bool:
    del before
    return table_version(path) > committed_batch(path)


def the_batch_is_committed(path: Path, before: int) -> bool:
    return committed_batch(path) > before


def a_file_is_being_written(path: Path, before: int) -> bool:
    del before
    return any((path / "records").rglob("*.snappy.parquet"))


POINTS: tuple[Callable[[Path, int], bool], ...] = (
    the_first_batch_is_being_written,
    a_batch_is_planned,
    quarantine_is_written,
    the_table_is_written,
    the_batch_is_committed,
    a_file_is_being_written,
)


@pytest.mark.parametrize("table_format", ["delta", "parquet"])
def test_killed_at_every_step(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path, table_format: str, minutes: float
) -> None:
    """One folder, killed at each point in turn and at drawn moments until the time is over; judged once, at the end."""
    topic, path, schema = make_topic(partitions=3), tmp_path / "lake", tmp_path / "schema"
    schema.write_text("n bigint")
    seed = int(os.environ.get("TIDELOG_LAND_SEED", "1"))
    chance = random.Random(seed)
    print(f"again with TIDELOG_LAND_SEED={seed}")
    words = [*WORDS, "--values", "json", "--schema", str(schema), "--format", table_format]
    deadline = time.monotonic() + 60 * minutes / 10
    points = list(POINTS) if table_format == "delta" else [a_batch_is_planned, the_batch_is_committed]
    written = 0

    def write(count: int) -> None:
        nonlocal written
        for partition in range(3):
            values = [b'{"n": %d}' % each if each % 5 else b"bad" for each in range(written, written + count)]
            confluent.produce_all(node, topic, [Record(None, value, 1) for value in values], partition=partition)
        written += count

    kills = 0
    while time.monotonic() < deadline or kills < len(points):
        write(200)
        before = committed_batch(path)
        driver = start_land(node, topic, path, *words)
        if kills < len(points):
            point = points[kills]
            kill_when(driver, lambda point=point, before=before: point(path, before), point.__name__)
        else:
            _kill_after(driver, chance.uniform(5, 30))
        kills += 1
    write(100)
    # What is left is landed in batches of another size: those of the kills would take longer than all the kills.
    driver = start_land(node, topic, path, *words, "--once", "--max-records", "3000")
    assert driver.wait(600) == 0, driver.tail()
    print(f"{kills} kills, {3 * written} records")
    assert_landed_once(spark, node, path, topic, table_format=table_format)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_orderly(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path, number: signal.Signals
) -> None:
    topic, path = make_topic(), tmp_path / "lake"
    confluent.produce_all(node, topic, [Record(None, b"%d" % each, 1) for each in range(100)])
    driver = start_land(node, topic, path)
    wait_until(lambda: committed_batch(path) >= 0, 300, "the first batch is landed")
    os.kill(driver.pid, number)
    assert driver.wait(120) == 0, driver.tail()
    assert "landed 100 records in 1 batch " in driver.tail()
    assert_landed_once(spark, node, path, topic)


def test_a_pipeline_is_submitted_to_a_cluster_of_spark(
    spark: SparkSession, standalone: StandaloneSpark, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """spark-submit, a master, two workers: the executors are processes of their own, and so is the driver."""
    topic, path = make_topic(partitions=4), tmp_path / "lake"
    for partition in range(4):
        records = [Record(None, b"%d" % each, 1) for each in range(5_000)]
        confluent.produce_all(node, topic, records, partition=partition)
    found = ",".join(str(each) for each in jars.fetch(jars.DELTA, jars.directory()))
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", standalone.master, "--jars", found]
    for name, value in {**jars.DELTA_SETTINGS, "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}.items():
        command += ["--conf", f"{name}={value}"]
    command += [land.__file__, "--bootstrap", node.bootstrap, "--topics", topic, "--path", str(path), "--once"]
    known = len(standalone.applications)
    for _ in range(2):
        driver = ManagedProcess(command, tmp_path / "submit.log")
        assert driver.wait(600) == 0, driver.tail()
    assert len(standalone.applications) == known + 2, "it did not run on the executors of the cluster"
    assert_landed_once(spark, node, path, topic)


def _kill_after(driver: ManagedProcess, seconds: float) -> None:
    until = time.monotonic() + seconds
    kill_when(driver, lambda: time.monotonic() >= until, "the moment comes")
