"""`audit` finds each fault that is planted, names its place, and finds nothing where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.support.nodes import Node
from tidelog.client.admin import delete_records
from tidelog.client.client import Client
from tidelog.ledger import Entry
from tidelog.spark.pipelines import audit, cluster, findings, land
from tidelog.spark.pipelines.audit import Audit
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.progress import Silent

EPOCHS = [("t", 0, 0, 0, 3), ("t", 0, 2, 3, 100), ("t", 1, 0, 0, 100)]


def entry(sequence: int, offset: int, outcome: str = "acknowledged", producer: str = "p", partition: int = 0) -> Entry:
    value = f"{producer}:{sequence}"
    return Entry(producer, sequence, value, "t", partition, offset, outcome, "", 1_000 + 10 * sequence)


def audit_of(
    spark: SparkSession,
    ledger: Sequence[Entry],
    log: Sequence[Any],
    lake: Sequence[Any] | None = None,
    start: int = 0,
    lake_has_bytes: bool = True,
) -> Audit:
    entries = [tuple(getattr(each, name) for name in Entry.__dataclass_fields__) for each in ledger]
    return Audit(
        spark.createDataFrame(entries, findings.LEDGER),
        spark.createDataFrame([("t", *row) for row in log], findings.LOG),
        None if lake is None else spark.createDataFrame([("t", *row) for row in lake], findings.LAKE),
        spark.createDataFrame(EPOCHS, findings.EPOCHS),
        spark.createDataFrame([("t", 0, start), ("t", 1, 0)], findings.STARTS),
        lake_has_bytes=lake_has_bytes,
    )


def found(result: Audit) -> list[tuple[Any, ...]]:
    return [(row.kind, row.partition, row.epoch, row.producer, row.sequence, row.offset) for row in result.shown]


LEDGER = [entry(0, 0), entry(1, 1), entry(2, 2), entry(3, 3), entry(4, 0, partition=1)]
LOG = [(0, 0, "p:0"), (0, 1, "p:1"), (0, 2, "p:2"), (0, 3, "p:3"), (1, 0, "p:4")]


def test_all_is_well(spark: SparkSession) -> None:
    result = audit_of(spark, LEDGER, LOG, LOG)
    assert (found(result), result.bad) == ([], {})
    assert (result.acknowledged, result.in_log, result.landed) == (5, 5, 5)
    assert [tuple(row) for row in result.rows] == [
        ("t", 0, 0, "p", 3, 3, 3),
        ("t", 0, 2, "p", 1, 1, 1),
        ("t", 1, 0, "p", 1, 1, 1),
    ]
    assert result.longest_silence_ms == 10


def test_each_fault_that_is_planted_is_found_with_its_place(spark: SparkSession) -> None:
    ledger = [
        *(entry(0, 0), entry(1, 1), entry(2, 3), entry(3, 2), entry(4, 4), entry(5, 5), entry(6, -1, "failed")),
        *(entry(sequence, sequence, producer="q", partition=1) for sequence in range(5)),
    ]
    log = [
        # 0 is lost, 2 and 3 have changed places, 4 is not where it was told to be, 5 is there twice,
        # 6 is there though its producer was told that it is not, and two are of nobody.
        *((0, 1, "p:1"), (0, 2, "p:3"), (0, 3, "p:2"), (0, 5, "p:5"), (0, 6, "p:4"), (0, 7, "p:5"), (0, 8, "p:6")),
        *((0, 9, "stranger"), (0, 10, None)),
        *((1, sequence, f"q:{sequence}") for sequence in range(5)),
    ]
    lake = [
        *(row for row in log if row[0] == 0),
        *((1, 0, "q:0"), (1, 0, "q:0"), (1, 2, "other"), (1, 3, None), (1, 4, "q:4"), (1, 9, "q:9")),
    ]
    result = audit_of(spark, ledger, log, lake)
    assert found(result) == [
        ("duplicated", 0, 2, "p", 5, 7),
        ("landed differently", 1, 0, "q", 2, 2),
        ("landed differently", 1, 0, "q", 3, 3),
        ("landed twice", 1, 0, "q", 0, 0),
        ("landed unexpected", 1, 0, None, None, 9),
        ("lost", 0, 0, "p", 0, 0),
        ("moved", 0, 2, "p", 4, 6),
        ("not landed", 1, 0, "q", 1, 1),
        ("reordered", 0, 2, "p", 2, 3),
        ("reordered", 0, 2, "p", 4, 6),
        ("unasked", 0, 2, "p", 6, 8),
        ("unexpected", 0, 2, None, None, 9),
        ("unexpected", 0, 2, None, None, 10),
    ]
    assert set(result.bad) == set(findings.KINDS), "every kind there is was planted; what is only told is not bad"
    lost = next(row for row in result.shown if row.kind == "lost")
    assert (lost.value, lost.detail) == ("p:0", "told offset 0")


def test_what_retention_took_is_not_lost_and_a_parsed_lake_is_compared_by_place(spark: SparkSession) -> None:
    result = audit_of(spark, LEDGER, LOG[1:], [(*row[:2], None) for row in LOG], start=1, lake_has_bytes=False)
    assert (found(result), result.acknowledged, result.in_log, result.landed) == ([], 5, 4, 4)


def abort(node: Node, topic: str, values: Sequence[bytes]) -> None:
    """Records that are in the log and that no reader of committed records sees: written by a turn that failed."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": f"{topic}-turn"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(60)
    producer.abort_transaction(60)


def test_a_real_topic_its_ledger_and_its_lake(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(partitions=2)
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    abort(node, topic, [b"0:%d" % number for number in range(5)])
    for partition in range(2):
        values = [f"{partition}:{number}" for number in range(50)]
        told = confluent.produce_all(
            node, topic, [Record(None, value.encode(), 1) for value in values], partition=partition
        )
        with (ledger / f"{topic}-{partition}.jsonl").open("w") as file:
            for number, message in enumerate(told):
                value = (message.value() or b"").decode()
                made = Entry(
                    str(partition), number, value, topic, partition, message.offset() or 0, "acknowledged", "", 1
                )
                file.write(made.to_line() + "\n")
    common = {"bootstrap": node.bootstrap}
    path = str(tmp_path / "lake")
    land.run(spark, land.PIPELINE.options_of(**common, topics=topic, path=path, once=True), Silent())
    options = {**common, "ledger": str(ledger), "lake": path, "report": str(tmp_path / "audit.html")}
    outcome = audit.run(spark, audit.PIPELINE.options_of(**options), Silent())
    assert outcome.ok, outcome.lines
    assert (outcome.details["acknowledged"], outcome.details["in_log"], outcome.details["landed"]) == (100, 100, 100)
    assert "Everything that was acknowledged is there, once" in (tmp_path / "audit.html").read_text()

    # Behind a transaction that is open nothing can be seen, and nothing is lost.
    monkeypatch.setattr(cluster, "SETTLE_MS", 1_000)
    hanging = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": f"{topic}-open", "log_level": 0})
    hanging.init_transactions(60)
    hanging.begin_transaction()
    hanging.produce(topic, b"open", partition=1)
    hanging.flush(60)
    (behind,) = confluent.produce_all(node, topic, [Record(None, b"1:50", 1)], partition=1)
    with (ledger / f"{topic}-1.jsonl").open("a") as file:
        file.write(Entry("1", 50, "1:50", topic, 1, behind.offset() or 0, "acknowledged", "", 1).to_line() + "\n")
    with pytest.raises(PipelineError, match=f"a transaction is open in {topic}-1 from offset 50 on"):
        audit.run(spark, audit.PIPELINE.options_of(**options), Silent())
    hanging.abort_transaction(60)
    land.run(spark, land.PIPELINE.options_of(**common, topics=topic, path=path, once=True), Silent())

    with (ledger / f"{topic}-0.jsonl").open("a") as file:
        file.write(Entry("0", 50, "gone", topic, 0, 50, "acknowledged", "", 1).to_line() + '\n{"producer": "torn')
    confluent.produce_all(node, topic, [Record(None, b"stranger", 1)])
    outcome = audit.run(spark, audit.PIPELINE.options_of(**options), Silent())
    assert not outcome.ok
    counts = {kind: count for kind, count in outcome.details["findings"].items() if count}
    assert counts == {"lost": 1, "unexpected": 1, "not landed": 1}
    assert "NOT everything held: 1 lost, 1 unexpected, 1 not landed" in (tmp_path / "audit.html").read_text()

    # What retention takes when the audit has looked where the log begins is not lost, and not passed over either.
    def late(*given: Any) -> Any:
        with Client(node.bootstrap) as client:
            delete_records(client, {(topic, 1): 10})
        return read_log(*given)

    read_log = audit.read_log
    monkeypatch.setattr(audit, "read_log", late)
    with pytest.raises(Exception, match=f"{topic}-1.* records before 10 were deleted"):
        audit.run(spark, audit.PIPELINE.options_of(**options), Silent())


def test_a_ledger_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no ledger"):
        audit.read_ledger(spark, str(tmp_path / "none"), Silent())
    (tmp_path / "empty").write_text("not json\n")
    with pytest.raises(PipelineError, match="has no entries"):
        audit.read_ledger(spark, str(tmp_path / "empty"), Silent())
