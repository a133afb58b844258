"""`audit`: what the producers were told, against what the log holds, against what was landed.

    ledger  one JSON object a line, as `tidelog.ledger` has it and `tidelog verify` writes it
    log     the topics, as readers of committed records see them
    lake    the tables of `land`, records and quarantine

The verdict is good when every acknowledged record is in the log once, at the offset that was told and in its producer's
order, and everything in the log is in the lake once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidelog.spark.pipelines import charts, cluster, findings, report
from tidelog.spark.pipelines.declaration import BOOTSTRAP, Option, Options, Outcome, Pipeline, whole, words
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.lake import lake_at
from tidelog.spark.pipelines.progress import Progress, Step
from tidelog.spark.pipelines.report import Card, Section

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from tidelog.client.client import TopicPartition

SHOWN = 20
"""Findings of each kind that are shown with their offsets; all are counted."""
BUCKETS = 120
"""Points of the picture of acknowledgements over time."""


def settings(options: Options) -> dict[str, str]:
    """Delta's jars, when there is a lake and they are here; a lake of Parquet does without."""
    from tidelog.spark.pipelines import jars

    if not options.lake:
        return {}
    paths = [jars.directory() / artifact.file_name for artifact in jars.DELTA]
    if not all(path.is_file() for path in paths):
        return {}
    return {**jars.DELTA_SETTINGS, "spark.jars": ",".join(map(str, paths))}


def run(spark: SparkSession, options: Options, progress: Progress) -> Outcome:
    """Read all three, compare, print and draw."""
    ledger = read_ledger(spark, options.ledger, progress)
    client = cluster.connect(options.bootstrap)
    try:
        topics = words(options.topics) or [row.topic for row in ledger.select("topic").distinct().collect()]
        cluster.topics_named(client, topics)
        cluster.wait_until_settled(client, topics)
        epochs = spark.createDataFrame(cluster.epochs_of(client, topics), findings.EPOCHS)
        first = cluster.ends_of(client, topics, earliest=True)
        starts = spark.createDataFrame([(*where, offset) for where, offset in first.items()], findings.STARTS)
    finally:
        client.close()
    progress.show(Step(0, note=f"reading {', '.join(topics)}"))
    log = read_log(spark, options, first)
    lake, has_bytes = read_lake(spark, options.lake, topics) if options.lake else (None, False)
    ledger = ledger.where(ledger.topic.isin(topics)).persist()
    try:
        given = {"lake_has_bytes": has_bytes, "gap_over_ms": options.gap_over}
        result = Audit(ledger, log, lake, epochs, starts, **given)
        progress.show(Step(result.in_log, note="drawing"))
        return _outcome(result, options, topics)
    finally:
        ledger.unpersist()


def read_ledger(spark: SparkSession, path: str, progress: Progress) -> DataFrame:
    """The entries of a file or a folder; lines that are none are counted and told, not taken."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    try:
        lines = spark.read.text(path, recursiveFileLookup=True)
    except AnalysisException:
        raise PipelineError(f"there is no ledger {path}") from None
    parsed = lines.where("trim(value) != ''").select(f.from_json("value", findings.LEDGER).alias("entry"))
    entries = parsed.select("entry.*")
    is_entry = f.col("topic").isNotNull() & f.col("value").isNotNull() & f.col("outcome").isNotNull()
    torn = entries.where(~is_entry).count()
    if torn:
        progress.say(f"{torn} lines of {path} are no entries of a ledger (the end of a file may be torn)")
    found = entries.where(is_entry)
    if found.isEmpty():
        raise PipelineError(f"{path} has no entries of a ledger")
    return found


def read_log(spark: SparkSession, options: Options, first: Mapping[TopicPartition, int]) -> DataFrame:
    """The topics as they are now, values as text.

    Named by the offsets where they began when they were asked: what retention takes meanwhile is then an error, and
    not taken for lost.
    """
    starts: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in first.items():
        starts.setdefault(topic, {})[str(partition)] = offset
    reader = spark.read.format(options.source).option("kafka.bootstrap.servers", options.bootstrap)
    given = {"startingOffsets": json.dumps(starts), "kafka.isolation.level": "read_committed"}
    rows = reader.options(**given, subscribe=",".join(starts)).load()
    return rows.selectExpr("topic", "partition", "offset", "cast(value as string) as value")


def read_lake(spark: SparkSession, path: str, topics: list[str]) -> tuple[DataFrame, bool]:
    """Everything that was landed of the topics, in quarantine or not, and whether its bytes were kept."""
    from pyspark.sql import functions as f

    lake = lake_at(spark, path)
    tables = [lake.read(spark, name) for name in (lake.records, lake.quarantine)]

    def narrow(table: DataFrame) -> DataFrame:
        value = f.col("value").cast("string") if "value" in table.columns else f.lit(None).cast("string")
        return table.where(f.col("topic").isin(topics)).select(*findings.PLACE, value.alias("value"))

    frames = [narrow(table) for table in tables if table is not None]
    if not frames:
        raise PipelineError(f"nothing was landed in {path} yet")
    has_bytes = tables[0] is not None and "value" in tables[0].columns
    return (frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])), has_bytes


class Audit:
    """What came out: counts, findings and the table by partition, epoch and producer, all as plain values."""

    def __init__(
        self,
        ledger: DataFrame,
        log: DataFrame,
        lake: DataFrame | None,
        epochs: DataFrame,
        starts: DataFrame,
        *,
        lake_has_bytes: bool = True,
        gap_over_ms: int = 0,
    ) -> None:
        from pyspark.sql import functions as f

        rows = findings.compare(ledger, log, lake, epochs, starts).persist()
        found = findings.findings_of(rows, with_lake=lake is not None, with_bytes=lake_has_bytes).persist()
        self.counts: dict[str, int] = {row.kind: row["count"] for row in found.groupBy("kind").count().collect()}
        ranked = found.selectExpr(
            "*", "row_number() over (partition by kind order by topic, partition, offset) as rank"
        )
        self.shown: list[Row] = ranked.where(f.col("rank") <= SHOWN).orderBy("kind", "rank").collect()
        by_place = found.groupBy("kind", "topic", "partition", "epoch", "producer")
        self.grouped: list[Row] = (
            by_place.agg(f.count("*").alias("count"), f.min("offset").alias("first"), f.max("offset").alias("last"))
            .orderBy("kind", "topic", "partition", "epoch", "producer")
            .collect()
        )
        self.rows: list[Row] = findings.summary_of(rows).collect()
        found.unpersist()
        rows.unpersist()
        self.silences: list[Row] = findings.silences(ledger).collect()
        self.gap_over_ms = gap_over_ms
        self.acknowledged = sum(row.acknowledged for row in self.rows)
        self.in_log = sum(row.in_log for row in self.rows)
        self.landed = None if lake is None else sum(row.landed for row in self.rows)
        self.rates = _acknowledged_over_time(ledger)

    @property
    def bad(self) -> dict[str, int]:
        """Findings that break a promise, by kind."""
        return {kind: self.counts[kind] for kind in findings.KINDS if self.counts.get(kind)}

    @property
    def longest_silence_ms(self) -> int:
        """The longest time in which some partition acknowledged nothing."""
        return max((row.length_ms or 0 for row in self.silences), default=0)


def _acknowledged_over_time(ledger: DataFrame) -> list[tuple[int, int]]:
    """Acknowledged records in equal pieces of the time they took."""
    from pyspark.sql import functions as f

    times = ledger.where("outcome = 'acknowledged'")
    span: Any = times.agg(f.min("time_ms").alias("begin"), f.max("time_ms").alias("end")).first()
    if span is None or span.begin is None:
        return []
    width_ms = max(1, -(-(span.end - span.begin + 1) // BUCKETS))
    bucket = f.floor((f.col("time_ms") - span.begin) / width_ms)
    counted = {row.bucket: row["count"] for row in times.groupBy(bucket.alias("bucket")).count().collect()}
    buckets = -(-(span.end - span.begin + 1) // width_ms)
    return [
        (span.begin + number * width_ms, round(counted.get(number, 0) * 1000 / width_ms)) for number in range(buckets)
    ]


def _outcome(result: Audit, options: Options, topics: list[str]) -> Outcome:
    ok = not result.bad
    counted = [f"acknowledged {result.acknowledged:,}", f"in the log {result.in_log:,}"]
    if result.landed is not None:
        counted.append(f"landed {result.landed:,}")
    counted += [f"lost {result.counts.get('lost', 0):,}", f"duplicated {result.counts.get('duplicated', 0):,}"]
    counted += [f"{kind} {count:,}" for kind, count in result.bad.items() if kind not in ("lost", "duplicated")]
    lines = [", ".join(counted)]
    lines += [
        f"  {row.kind}: {_place(row)}, producer {row.producer}: {row['count']:,} at offsets {row.first}–{row.last}"
        for row in result.grouped
        if row.kind in findings.KINDS
    ][:SHOWN]
    verdict = (
        "Everything that was acknowledged is there, once"
        if ok
        else "NOT everything held: " + ", ".join(f"{count:,} {kind}" for kind, count in result.bad.items())
    )
    details: dict[str, Any] = {
        "topics": topics,
        "acknowledged": result.acknowledged,
        "in_log": result.in_log,
        "landed": result.landed,
        "findings": {**dict.fromkeys(findings.KINDS, 0), **result.counts},
        "longest_silence_ms": result.longest_silence_ms,
        "groups": [row.asDict() for row in result.grouped],
        "examples": [row.asDict() for row in result.shown],
    }
    if options.report:
        details["report"] = report.save(options.report, _page(result, topics, verdict, ok=ok))
        lines.append(f"report: {details['report']}")
    return Outcome(ok, [*lines, verdict], details)


def _page(result: Audit, topics: list[str], verdict: str, *, ok: bool) -> str:
    lost, doubled = result.counts.get("lost", 0), result.counts.get("duplicated", 0)
    cards = [Card(f"{result.acknowledged:,}", "acknowledged"), Card(f"{result.in_log:,}", "in the log")]
    cards += [] if result.landed is None else [Card(f"{result.landed:,}", "landed in the lake")]
    cards += [
        Card(f"{lost:,}", "lost", report.BAD if lost else report.GOOD),
        Card(f"{doubled:,}", "duplicated", report.BAD if doubled else report.GOOD),
        Card(report.duration(result.longest_silence_ms), "longest silence of a partition"),
    ]
    kinds = findings.KINDS | findings.ALLOWED
    checks = [
        [kind, text, result.counts.get(kind, 0)]
        for kind, text in kinds.items()
        if result.landed is not None or "landed" not in kind
    ]
    places = [[row.kind, _place(row), row.producer, row["count"], row.first, row.last] for row in result.grouped]
    examples = [
        [row.kind, _place(row), row.offset, row.producer, row.sequence, (row.value or "")[:60], row.detail]
        for row in result.shown
        if row.kind in findings.KINDS
    ]
    sections = [
        Section(
            "What was checked",
            "A verdict is good when all but the last are 0.",
            report.table(["finding", "what it means", "records"], checks),
        ),
        *_rate_section(result),
    ]
    if places:
        headings = ["finding", "partition and epoch", "producer", "records", "first offset", "last offset"]
        sections.append(Section("Where", "By partition, leader epoch and producer.", report.table(headings, places)))
    if examples:
        headings = ["finding", "partition and epoch", "offset", "producer", "sequence", "value", "detail"]
        about = f"The first {SHOWN} of each kind. The epoch is the one that the offset belongs to now."
        sections.append(Section("Records", about, report.table(headings, examples)))
    rows = [
        [row.topic, row.partition, row.epoch, row.producer, row.acknowledged, row.in_log]
        + ([] if result.landed is None else [row.landed])
        for row in result.rows
    ]
    headings = ["topic", "partition", "epoch", "producer", "acknowledged", "in the log"]
    headings += [] if result.landed is None else ["landed"]
    sections.append(
        Section("Every record, counted", "By partition, leader epoch and producer.", report.table(headings, rows))
    )
    return report.page(
        "Audit: ledger, log and lake",
        verdict,
        ok=ok,
        about=f"Topics {', '.join(topics)}",
        cards=cards,
        sections=sections,
    )


def _rate_section(result: Audit) -> list[Section]:
    if not result.rates:
        return []
    scale = charts.Scale(result.rates[0][0], result.rates[-1][0])
    longest = result.silences[0] if result.silences else None
    marks = []
    if longest is not None and longest.length_ms and longest.length_ms > max(result.gap_over_ms, 1):
        text = f"{longest.topic}-{longest.partition} silent for {report.duration(longest.length_ms)}"
        marks.append(charts.Mark(longest.begin_ms, text))
    picture = charts.lines_over_time({"acknowledged a second": result.rates}, scale, marks=marks)
    return [
        Section("Acknowledged over time", "Records a second, over all partitions, as the producers saw it.", picture)
    ]


def _place(row: Any) -> str:
    return f"{row.topic}-{row.partition}" + ("" if row.epoch is None else f", epoch {row.epoch}")


PIPELINE = Pipeline(
    name="audit",
    summary="the producers' ledger against the log against the lake",
    examples="""\
  tidelog pipeline audit --ledger ./ledger --topics orders --lake ./lake --report audit.html
  tidelog pipeline audit --ledger ./proof/ledger --bootstrap 127.0.0.1:9092      without a lake: ledger and log

The ledger is a file or a folder of lines of JSON, one a record, written when its outcome is known: producer, sequence,
value, topic, partition, offset, outcome (acknowledged, failed, unknown), error, time_ms. Exit code 0 when everything
that was acknowledged is in the log once and in order and everything in the log was landed once, 1 when not.""",
    options=(
        BOOTSTRAP,
        Option("ledger", "file or folder of the producers' ledger", metavar="PATH", required=True),
        Option("topics", "topics to compare (default: those of the ledger)", metavar="T,…"),
        Option("lake", "folder that land wrote to; without it only ledger and log are compared", metavar="PATH"),
        Option("report", "write a page of HTML", metavar="FILE"),
        Option(
            "gap_over", "mark a silence over so many milliseconds in the picture", default=100, kind=whole, metavar="MS"
        ),
        Option(
            "source",
            "our source, or Spark's own connector where its jars are",
            default="tidelog",
            choices=("tidelog", "kafka"),
        ),
    ),
    reads={"ledger": findings.LEDGER, "log": findings.LOG, "lake": findings.LAKE},
    writes={"findings": findings.FINDINGS, "summary": findings.SUMMARY},
    run=run,
    settings=settings,
)

if __name__ == "__main__":
    from tidelog.spark.pipelines.launch import main

    sys.exit(main(PIPELINE))
