"""`mirror` between two real nodes, held against each other by librdkafka."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.samples import Record
from tests.spark import sink_judge
from tests.support.nodes import Node, passing_node, peer_under_test
from tidelog.client.admin import delete_records
from tidelog.client.client import Client
from tidelog.client.groups import committed_offsets
from tidelog.errors import ConfigError
from tidelog.spark.pipelines import cluster
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.mirror import mirror, mirrored
from tidelog.spark.transactions import CheckpointError

PARTITIONS = 3


@pytest.fixture(scope="module")
def target() -> Iterator[Node]:
    """A second cluster of one node."""
    with passing_node(peer_under_test()) as started:
        yield started


def fill(node: Node, topic: str, turn: int, count: int = 200) -> None:
    """Records with keys, headers and timestamps of their own, the same key always in one partition."""
    for partition in range(PARTITIONS):
        records = [
            Record(
                None if number % 7 == 0 else b"key-%d-%d" % (partition, number % 5),
                None if number % 11 == 0 else b"turn %d number %d" % (turn, number),
                1_700_000_000_000 + 1_000 * turn + number,
                (("turn", b"%d" % turn), ("nothing", None)) if number % 3 == 0 else (),
            )
            for number in range(count)
        ]
        confluent.produce_all(node, topic, records, partition=partition)


def content(node: Node, topic: str) -> list[tuple[object, ...]]:
    """All that must be the same on both sides, in the order of partitions and offsets."""
    return [
        (one.partition, one.key, one.value, one.headers, one.timestamp_ms)
        for one in sink_judge.read_committed(node.bootstrap, topic, PARTITIONS)
    ]


def test_everything_is_kept_and_a_second_run_adds_what_came(
    spark: SparkSession, node: Node, target: Node, tmp_path: Path
) -> None:
    for topic in ("shop-orders", "shop-payments"):
        confluent.create_topic(node, topic, PARTITIONS)
    options = {
        "bootstrap": node.bootstrap,
        "to": target.bootstrap,
        "pattern": "shop-.*",
        "checkpoint": str(tmp_path / "checkpoint"),
        "name": "shop",
        "once": True,
        "max_records": 900,
    }
    for turn in range(2):
        for topic in ("shop-orders", "shop-payments"):
            fill(node, topic, turn)
        if turn == 1:  # one that came later
            confluent.create_topic(node, "shop-returns", PARTITIONS)
            fill(node, "shop-returns", turn)
        outcome = mirror(spark, **options)
        assert outcome.ok
        assert outcome.details["records"] == (2 + turn) * PARTITIONS * 200
        assert outcome.details["batches"] > 1
    # A copy of the checkpoint that lacks the last batch would plan it anew, and what came since would be left out.
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    last = max(int(each.name) for each in (tmp_path / "copy" / "offsets").iterdir() if each.name.isdigit())
    for folder in ("offsets", "commits"):
        for name in (str(last), f".{last}.crc"):
            (tmp_path / "copy" / folder / name).unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match=f"knows of batch {last - 1}, but batch {last} is written.* older copy"):
        mirror(spark, **(options | {"checkpoint": str(tmp_path / "copy")}))
    for topic in ("shop-orders", "shop-payments", "shop-returns"):
        there = content(target, topic)
        assert there == content(node, topic)
        assert len(there) == PARTITIONS * 200 * (1 if topic == "shop-returns" else 2)
    with Client(node.bootstrap) as client:
        committed = committed_offsets(client, "mirror-shop")
    assert {where: one.offset for where, one in committed.items()}[("shop-orders", 0)] == 400


def test_topics_go_under_another_name_and_partitions_are_added(
    spark: SparkSession, node: Node, target: Node, tmp_path: Path
) -> None:
    confluent.create_topic(node, "events", PARTITIONS)
    confluent.create_topic(target, "old.events", 1)
    fill(node, "events", 0, 20)
    outcome = mirror(
        spark,
        bootstrap=node.bootstrap,
        to=target.bootstrap,
        topics="events",
        prefix="old.",
        checkpoint=str(tmp_path / "checkpoint"),
        name="renamed",
        once=True,
        compression="zstd",
    )
    assert outcome.details["records"] == 60
    assert content(target, "old.events") == content(node, "events")


def test_records_that_were_deleted_before_they_were_mirrored(
    spark: SparkSession, node: Node, target: Node, tmp_path: Path
) -> None:
    confluent.create_topic(node, "short-lived", PARTITIONS)
    fill(node, "short-lived", 0, 20)
    with Client(node.bootstrap) as client:
        delete_records(client, {("short-lived", 1): 15})
    given = {"bootstrap": node.bootstrap, "to": target.bootstrap, "checkpoint": str(tmp_path / "c"), "once": True}
    starts = json.dumps({"short-lived": {"0": 0, "1": 3, "2": 0}})
    options = given | {"topics": "short-lived", "name": "late", "starting_offsets": starts}
    with pytest.raises(PipelineError, match=r"offsets 3 to 14 were deleted; .*; --accept-loss goes on without them$"):
        mirror(spark, **options)
    assert content(target, "short-lived") == []
    assert mirror(spark, **options, accept_loss=True).details["records"] == 45
    assert content(target, "short-lived") == content(node, "short-lived")


def test_what_cannot_be_mirrored_is_said(
    spark: SparkSession, node: Node, target: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "REACH_MS", 3_000)
    confluent.create_topic(node, "here", 1)
    given = {"bootstrap": node.bootstrap, "to": target.bootstrap, "checkpoint": str(tmp_path / "c"), "once": True}
    with pytest.raises(ConfigError, match="--topics or --pattern"):
        mirror(spark, **given)
    with pytest.raises(PipelineError, match="there is no topic 'hre'"):
        mirror(spark, **given, topics="hre")
    with pytest.raises(PipelineError, match="the same cluster"):
        mirror(spark, **(given | {"to": node.bootstrap}), topics="here")
    with pytest.raises(PipelineError, match=r"--pattern '\.\*' fits 'copy-.*' too, .* copied again"):
        mirror(spark, **(given | {"to": node.bootstrap}), pattern=".*", prefix="copy-")
    with pytest.raises(PipelineError, match=r"no broker of 127\.0\.0\.1:1 could be reached for 3 s"):
        mirror(spark, **(given | {"to": "127.0.0.1:1"}), topics="here")


def test_rows_keep_all_but_their_offset(spark: SparkSession) -> None:
    columns = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    columns += "timestampType int, headers array<struct<key:string,value:binary>>"
    rows = spark.createDataFrame([(b"k", b"v", "t", 2, 9, None, 0, None)], columns)
    (row,) = mirrored(rows, "old.").collect()
    assert row.asDict() == {
        "topic": "old.t",
        "partition": 2,
        "timestamp": None,
        "key": bytearray(b"k"),
        "value": bytearray(b"v"),
        "headers": None,
    }
