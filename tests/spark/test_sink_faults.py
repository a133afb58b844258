"""Three of the kills of `make soak`: a driver, an executor and a broker, each where something could be lost."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from pyspark.sql import SparkSession

import tidelog.spark
from tests.spark import sink_faults
from tests.spark.sink_faults import Stage, kill_executor, one_node, require_exactly_once, run_with_fault
from tests.spark.sink_job import counting
from tests.spark.sink_proxy import END_TXN, PRODUCE, ProxiedClient
from tests.support.nodes import peer_under_test
from tidelog.spark.transactions import BatchWritten

BATCHES = 3
PEER = peer_under_test()


def run_here(spark: SparkSession, stage: Stage, checkpoint: Path) -> list[BatchWritten]:
    """The query in this process, until its last batch."""
    told: list[BatchWritten] = []
    done = threading.Event()

    def on_batch(written: BatchWritten) -> None:
        told.append(written)
        if written.batch_id >= BATCHES - 1:
            done.set()

    query = tidelog.spark.write_stream(
        counting(spark),
        bootstrap_servers=stage.bootstrap,
        topic=sink_faults.TOPIC,
        transactional_id=sink_faults.TRANSACTIONAL_ID,
        checkpoint_location=str(checkpoint),
        options={"kafka.batch.size": "4000"},
        on_batch=on_batch,
    )
    while query.isActive and not done.wait(0.1):
        pass
    query.stop()
    if not done.is_set():
        raise AssertionError(f"the query failed: {query.exception()}")
    return told


def test_a_driver_killed_when_its_commit_was_done_finds_the_batch_and_skips_it(tmp_path: Path) -> None:
    with one_node(PEER, tmp_path / "node") as stage:
        text = run_with_fault(stage, tmp_path, "driver", "end", "after", batches=BATCHES)
    assert "batch 1 skipped=True" in text


def test_an_executor_killed_in_the_middle_of_its_rows_costs_a_turn_and_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    with one_node(PEER, tmp_path / "node") as stage:

        def kill(client: ProxiedClient) -> None:
            kill_executor(client, os.getpid())

        trap = stage.traps.set(PRODUCE, "after", kill, skip=4)
        told = run_here(spark, stage, tmp_path / "checkpoint")
        assert trap.sprung.is_set()
        assert max(written.turns for written in told) == 2
        require_exactly_once(stage, BATCHES)


def test_a_coordinator_killed_at_the_commit_comes_back_and_commits(spark: SparkSession, tmp_path: Path) -> None:
    with one_node(PEER, tmp_path / "node") as stage:

        def kill(client: ProxiedClient) -> None:
            stage.kill_and_revive(client.broker_port)

        trap = stage.traps.set(END_TXN, "before", kill, skip=1)
        run_here(spark, stage, tmp_path / "checkpoint")
        assert trap.sprung.is_set()
        stage.settle()
        require_exactly_once(stage, BATCHES)
