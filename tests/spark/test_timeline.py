"""`timeline`: from the events of the nodes to who led when, how many were in sync, and how long it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.frames import records_of
from tidelog.spark.pipelines import events, report, timeline
from tidelog.spark.pipelines.charts import Bar, Mark, Scale, lines_over_time, rows_over_time
from tidelog.spark.pipelines.timeline import Timeline

PLACE = {"topic": "orders", "partition": 0}


def position(time_ms: int, leader: int, high_watermark: int, epoch: int = 0) -> dict[str, Any]:
    told = {"leader": leader, "leader_epoch": epoch, "high_watermark": high_watermark, "log_end_offset": high_watermark}
    return {
        "time_ms": time_ms,
        "node": leader,
        "kind": "replica-positions",
        **PLACE,
        **told,
        "followers": {"2": 1, "3": 1},
    }


STORY: Sequence[dict[str, Any]] = (
    {"time_ms": 1_000, "node": 1, "kind": "topic-created", "topic": "orders", "partitions": 1, "replication_factor": 3},
    {"time_ms": 1_000, "node": 1, "kind": "topic-created", "topic": "quiet", "partitions": 1, "replication_factor": 2},
    position(2_000, 1, 10),
    position(3_000, 1, 20),
    {"time_ms": 3_400, "node": 2, "kind": "broker-fenced", "broker": 1, "reason": "its connection broke"},
    {
        "time_ms": 3_400, "node": 2, "kind": "leader-lost", **PLACE, "leader": -1, "leader_epoch": 1,
        "previous_leader": 1, "isr": [1], "reason": "broker 1 fenced",
    },
    {
        "time_ms": 3_600, "node": 2, "kind": "leader-elected", **PLACE, "leader": 2, "leader_epoch": 2,
        "previous_leader": -1, "isr": [2], "unclean": True, "reason": "in-sync replica",
    },
    {
        "time_ms": 3_600, "node": 2, "kind": "isr-changed", **PLACE, "leader": 2, "leader_epoch": 2,
        "previous_isr": [1, 2, 3], "isr": [2], "joined": [], "left": [1, 3], "elr": [], "reason": "",
    },
    position(4_500, 2, 21, epoch=2),
    {
        "time_ms": 6_000, "node": 2, "kind": "isr-changed", **PLACE, "leader": 2, "leader_epoch": 2,
        "previous_isr": [2], "isr": [2, 1, 3], "joined": [1, 3], "left": [], "elr": [], "reason": "",
    },
    {
        "time_ms": 5_000, "node": 1, "kind": "log-truncated", **PLACE, "offset": 19, "records": 3, "leader": 2,
        "reason": "epoch 0 ends there",
    },
    {
        "time_ms": 8_000, "node": 2, "kind": "replica-positions", "topic": "quiet", "partition": 0, "leader": 3,
        "leader_epoch": 0, "high_watermark": 4, "log_end_offset": 4, "followers": {"1": 4},
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> DataFrame:
    values = [json.dumps(event).encode() for event in STORY] + [b"noise", b"[]", None]
    return events.events_of(records_of(spark, [(events.TOPIC, 0, *each) for each in enumerate(values)])).persist()


def test_the_story_in_tables_and_on_a_page(told: DataFrame, tmp_path: Path) -> None:
    result = Timeline(told, {"orders": 2}, end_ms=9_000)
    assert result.count == len(STORY), "what others wrote to the topic is left out"
    led = [(row.topic, row.leader, row.leader_epoch, row.from_ms, row.to_ms) for row in result.leaderships]
    assert led == [
        ("orders", 1, 0, 1_000, 3_400),
        ("orders", -1, 1, 3_400, 3_600),
        ("orders", 2, 2, 3_600, 9_000),
        ("quiet", 3, 0, 1_000, 9_000),
    ]
    assert [(row.topic, row.size, row.wanted, row.from_ms, row.to_ms) for row in result.isrs] == [
        ("orders", 3, 3, 1_000, 3_400),
        ("orders", 1, 3, 3_400, 3_600),
        ("orders", 1, 3, 3_600, 6_000),
        ("orders", 3, 3, 6_000, 9_000),
        ("quiet", 2, 2, 1_000, 9_000),
    ]
    failover = [(row.time_ms, row.leader, row.leaderless_ms, row.still_ms, row.unclean) for row in result.failovers]
    assert failover == [(3_600, 2, 200, 1_500, True)]
    assert [(row.node, row.offset, row.records) for row in result.truncations] == [(1, 19, 3)]
    assert [tuple(row) for row in result.health] == [
        ("orders", 0, 8_000, 200, 2_600, 2_600, 1, 3),
        ("quiet", 0, 8_000, 0, 0, 0, 0, 0),
    ]
    assert result.positions["orders-0"] == [(2_000, 10), (3_000, 20), (4_500, 21)]
    result.save(str(tmp_path / "tables"))
    assert {each.name for each in (tmp_path / "tables").iterdir()} == set(timeline.PIPELINE.writes)
    for name, columns in timeline.PIPELINE.writes.items():
        assert result.tables[name].columns == [part.split()[0] for part in columns.split(", ")], name
    options = timeline.PIPELINE.options_of(report=str(tmp_path / "timeline.html"))
    outcome = timeline._outcome(result, options)
    page = (tmp_path / "timeline.html").read_text()
    for expected in (
        "broker 1 fenced",
        "broker 2",
        "nobody",
        "1 of 3",
        "epoch 0 ends there",
        "committed records may be lost",
    ):
        assert expected in page
    assert outcome.lines[1] == "elections 1 (unclean 1), longest standstill at most 1.5 s"


def test_pictures_hold_what_they_are_given_and_nothing_else_gets_in() -> None:
    scale = Scale(0, 10_000)
    bars = {"orders-0": [Bar(0, 4_000, "broker 1", "#123456"), Bar(4_000, 10_000, "<b>", "#654321", "tip & more")]}
    picture = rows_over_time(
        bars, scale, [Mark(4_000, "killed"), Mark(4_001, "second"), Mark(4_002, "third"), Mark(99_000, "x")]
    )
    assert picture.count("<rect") == 2
    assert "killed" in picture
    assert "second" in picture, "in a lane of its own"
    assert "third" not in picture, "words that would lie on others are left out; the line stays"
    assert picture.count('class="mark"') == 3
    assert "&lt;b&gt;" in picture
    assert "tip &amp; more" in picture
    line = lines_over_time({"one": [(0, 0), (5_000, 50), (10_000, 100)]}, scale)
    assert line.count("<path") == 1
    assert "100" in line
    assert rows_over_time({}, scale).startswith("<svg")
    assert lines_over_time({"flat": [(0, 0)]}, Scale(5, 5)).startswith("<svg")


def test_a_page_shows_all_and_trusts_nothing() -> None:
    table = report.table(["name", "count"], [["<script>", 1_234], ["x", None]])
    assert "&lt;script&gt;" in table
    assert "1,234" in table
    assert "and 3 more" in report.table(["n"], [[number] for number in range(5)], most=2)
    assert report.table(["n"], []) == '<p class="empty">none</p>'
    assert [report.duration(each) for each in (None, 12, 1_500, 150_000, 8_000_000)] == [
        "–", "12 ms", "1.5 s", "2 min 30 s", "2 h 13 min",
    ]  # fmt: skip
