"""A query that is stopped in the middle of a batch ends quietly, and what it did is counted."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tidelog.spark
from tests.clients.conftest import TopicMaker
from tests.spark import sink_judge
from tests.support.nodes import Node
from tests.support.processes import wait_until
from tidelog.client.client import Client
from tidelog.client.offsets import LATEST, list_offsets
from tidelog.client.transactions import describe_transaction
from tidelog.spark.pipelines.progress import Silent
from tidelog.spark.pipelines.streams import POLL_S, Follower, stopped_by_signals
from tidelog.spark.sink_stream import sink_for
from tidelog.spark.stopping import Interrupted, told_briefly

SHORT_CHARACTERS = 2_000
"""Spark's pattern takes some of its stack for each; at 8,000 there is none left."""


def test_a_batch_that_a_stop_interrupts_says_so_in_few_words(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """Longer ones end the query's thread with a StackOverflowError and a page of trace on the user's terminal."""
    topic, go_on = make_topic(), tmp_path / "go on"

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (tmp_path / "begun").touch()
        deadline = time.monotonic() + 60
        while not go_on.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield from batches

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    slow = rows.selectExpr("cast(value as string) value").mapInArrow(wait, "value string")
    sink = sink_for(slow, node.bootstrap, "stopped", topic, None)
    said: list[str] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        try:
            sink(batch, batch_id)
        except BaseException:
            said.append(traceback.format_exc())
            raise

    query = slow.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "state")).start()
    try:
        wait_until((tmp_path / "begun").exists, 60, "the batch has begun")
        query.stop()
    finally:
        go_on.touch()
    assert query.exception() is None
    (text,) = said
    assert len(text) < SHORT_CHARACTERS, text
    # The words by which Spark tells a stop from a failure.
    assert "py4j.protocol.Py4JJavaError: An error occurred while calling" in text
    was_cancelled = "org.apache.spark.SparkException" in text and f"cancelled job group {query.runId}" in text
    assert was_cancelled or text.rstrip().endswith("java.lang.InterruptedException")


def test_a_stop_while_tasks_write_leaves_no_transaction_open(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """Whom Spark asks to abort then was told nothing by any task: readers waited for the transaction's timeout."""
    topic = make_topic()

    def write_and_wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # More than Spark, and then the sink, gather before they pass it on.
            yield pa.record_batch([pa.array(["x" * 1_000] * 40_000)], names=["value"])
            time.sleep(300)
            yield batch

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    slow = rows.selectExpr("cast(value as string) value").coalesce(1).mapInArrow(write_and_wait, "value string")
    writer = slow.writeStream.format("tidelog").option("kafka.bootstrap.servers", node.bootstrap)
    writer = writer.option("topic", topic).option("transactionalId", topic)
    writer = writer.option("checkpointLocation", str(tmp_path / "state"))

    def start() -> StreamingQuery:
        tidelog.spark.register(spark)  # or Spark would not find the format in this thread
        return writer.start()

    with Client(node.bootstrap) as client, ThreadPoolExecutor(1) as thread:
        query = thread.submit(start).result(60)
        try:
            wait_until(lambda: end_of(client, topic) > 0, 60, "something is written")
        finally:
            query.stop()
        assert query.exception() is None
        assert describe_transaction(client, topic).state != "Ongoing"
    assert sink_judge.read_committed(node.bootstrap, topic, 1) == []


def end_of(client: Client, topic: str) -> int:
    """The high watermark, open transactions or not."""
    return list_offsets(client, {(topic, 0): LATEST})[topic, 0].offset


def test_other_errors_are_told_as_they_are() -> None:
    for error in (
        ValueError("An error occurred while calling o1.collect: java.io.IOException"),
        KeyError("Interrupted"),
    ):
        with pytest.raises(type(error)) as raised, told_briefly():
            raise error
        assert raised.value is error
    told = r"calling o1\.x\.: java\.io\.InterruptedIOException: s3a://lake did not answer$"
    with pytest.raises(Interrupted, match=told), told_briefly():
        raise ValueError(
            "An error occurred while calling o1.x.\n: java.io.InterruptedIOException: s3a://lake did not answer\n"
            + "\tat y\n" * 999
        )


def test_a_cancelled_job_is_told_briefly_too() -> None:
    """A stop cancels the query's jobs before it interrupts its thread: now and then the batch hears of that first."""
    job = "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group c0ffee"
    told = r"^py4j\.protocol\.Py4JJavaError: An error occurred while calling o1\.x\.: .*cancelled job group c0ffee$"
    with pytest.raises(Interrupted, match=told), told_briefly():
        raise ValueError(f"An error occurred while calling o1.x.\n: {job}\n" + "\tat y\n" * 999)


def test_a_job_that_is_told_to_stop_counts_the_batch_it_has_in_hand(spark: SparkSession, tmp_path: Path) -> None:
    """It said that nothing was landed when it was stopped between the commit of a batch and the report of it."""
    begun = tmp_path / "begun"

    def work(batch: DataFrame, _batch_id: int) -> None:
        batch.collect()
        begun.touch()
        time.sleep(3 * POLL_S)

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.writeStream.foreachBatch(work).option("checkpointLocation", str(tmp_path / "state"))
    query = writer.trigger(processingTime="1 hour").start()
    follower = Follower(Silent(), None, to_the_end=False)
    follower.follow([query], begun.exists)
    assert (follower.rows, follower.batches, query.isActive) == (10, 1, False)
    assert query.exception() is None


def test_a_signal_is_noted_and_a_second_one_interrupts() -> None:
    """One that interrupts at once does so in the middle of a call into the JVM, and the user reads a trace of Py4J."""
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals() as is_stopped:
        assert not is_stopped()
        signal.raise_signal(signal.SIGTERM)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before
