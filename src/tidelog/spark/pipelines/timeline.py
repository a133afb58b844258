"""`timeline`: the story of the replicas, from the topic that the nodes write it to, as tables and pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidelog.errors import KafkaError
from tidelog.spark.pipelines import charts, cluster, events, report
from tidelog.spark.pipelines.charts import Bar, Mark, Scale
from tidelog.spark.pipelines.declaration import BOOTSTRAP, Option, Options, Outcome, Pipeline, words
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.progress import Progress, Step
from tidelog.spark.pipelines.report import Card, Section, clock, duration
from tidelog.spark.pipelines.values import RECORD_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_PARTITIONS = 40
"""So many partitions are drawn, those with the most changes first; all are in the tables."""
MOST_LINES = 8
MOST_POINTS = 400
_MARKED = {"broker-fenced": "broker {} fenced", "broker-unfenced": "broker {} back"}
_GREEN, _AMBER, _RED = "#2a9d6f", "#e0a526", "#c8452f"


def run(spark: SparkSession, options: Options, progress: Progress) -> Outcome:
    """Read the events, make the tables, draw."""
    client = cluster.connect(options.bootstrap)
    try:
        if events.TOPIC not in client.metadata.topics:
            raise PipelineError(
                f"the cluster has no topic {events.TOPIC}: its nodes do not tell what happens to replicas"
            )
        named = words(options.topics)
        cluster.topics_named(client, named)
        least = _least_in_sync(client, named)
    finally:
        client.close()
    progress.show(Step(0, note="reading the events"))
    told = read_events(spark, options.bootstrap, named, options.source).persist()
    try:
        result = Timeline(told, least)
        progress.show(Step(result.count, note="drawing"))
        if options.tables:
            result.save(options.tables)
        return _outcome(result, options)
    finally:
        told.unpersist()


def read_events(spark: SparkSession, bootstrap: str, topics: Sequence[str], source: str = "tidelog") -> DataFrame:
    """The events of the topics (all of them when none is named) and of the cluster as a whole."""
    from pyspark.sql import functions as f

    reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap).option("subscribe", events.TOPIC)
    told = events.events_of(reader.option("startingOffsets", "earliest").load())
    return told.where(f.col("topic").isNull() | f.col("topic").isin(list(topics))) if topics else told


def _least_in_sync(client: Any, topics: Sequence[str]) -> dict[str, int]:
    """min.insync.replicas of each topic, as far as the cluster tells."""
    from tidelog.client.admin import ResourceType, describe_configs_of_all

    names = list(topics) or [name for name in client.metadata.topics if not name.startswith("__")]
    if not names:
        return {}
    try:
        found = describe_configs_of_all(client, ResourceType.TOPIC, names, keys=["min.insync.replicas"])
    except KafkaError:  # a topic that was deleted meanwhile: its events are drawn without the bound
        return {}
    return {name: int(entry.value) for name, entries in found.items() for entry in entries if entry.value}


class Timeline:
    """The tables, and the small ones of them as rows."""

    def __init__(self, told: DataFrame, least: dict[str, int], end_ms: int | None = None) -> None:
        from pyspark.sql import functions as f

        span: Any = told.agg(
            f.min("time_ms").alias("begin"), f.max("time_ms").alias("end"), f.count("*").alias("n")
        ).first()
        if span is None or not span.n:
            raise PipelineError("there are no events to draw")
        self.count: int = span.n
        self.begin_ms: int = span.begin
        self.end_ms: int = end_ms or span.end
        self.least = least
        frame = told.sparkSession.createDataFrame(list(least.items()), "topic string, least int")
        known = events.partitions(told).persist()
        led = events.leaderships(told, known, self.end_ms).persist()
        in_sync = events.isrs(told, known, self.end_ms).persist()
        cut = events.truncations(told)
        self.tables = {
            "events": told,
            "leaderships": led,
            "isrs": in_sync,
            "positions": events.positions(told),
            "failovers": events.failovers(told, led),
            "truncations": cut,
            "health": events.health(in_sync, led, cut, frame),
        }
        self.leaderships = self.tables["leaderships"].orderBy("topic", "partition", "from_ms").collect()
        self.isrs = self.tables["isrs"].orderBy("topic", "partition", "from_ms").collect()
        self.failovers = self.tables["failovers"].orderBy("time_ms").collect()
        self.truncations = self.tables["truncations"].orderBy("time_ms").collect()
        self.health = self.tables["health"].collect()
        self.moments = told.where(f.col("kind").isin(*_MARKED, "controller-active")).orderBy("time_ms").collect()
        self.drawn = [
            (row.topic, row.partition) for row in sorted(self.health, key=lambda row: -row.elections)[:MOST_PARTITIONS]
        ]
        self.drawn.sort()
        self.positions = self._points()
        dropped: Any = told.agg(f.sum("dropped_before").alias("dropped")).first()
        self.dropped: int = dropped.dropped or 0

    def _points(self) -> dict[str, list[tuple[float, float]]]:
        """High watermarks over time of the first partitions drawn, thinned to what a picture can show."""
        from pyspark.sql import functions as f

        wanted = self.drawn[:MOST_LINES]
        place = f.struct("topic", "partition")
        chosen = self.tables["positions"].where(
            f.concat_ws("-", "topic", "partition").isin([f"{t}-{p}" for t, p in wanted])
        )
        width_ms = max(1, (self.end_ms - self.begin_ms) // MOST_POINTS)
        thin = chosen.groupBy(place.alias("place"), f.floor(f.col("time_ms") / width_ms).alias("bucket")).agg(
            f.max("time_ms").alias("time_ms"), f.max_by("high_watermark", "time_ms").alias("high_watermark")
        )
        points: dict[str, list[tuple[float, float]]] = {f"{topic}-{partition}": [] for topic, partition in wanted}
        for row in thin.orderBy("time_ms").collect():
            points[f"{row.place.topic}-{row.place.partition}"].append((row.time_ms, row.high_watermark))
        return {name: line for name, line in points.items() if line}

    def save(self, path: str) -> None:
        """Every table as Parquet in a folder of its own."""
        for name, table in self.tables.items():
            table.write.mode("overwrite").parquet(f"{path.rstrip('/')}/{name}")

    def total(self, column: str) -> int:
        """A time or a number of the health of all partitions together."""
        return sum(row[column] for row in self.health)


def _outcome(result: Timeline, options: Options) -> Outcome:
    longest = max((row.still_ms for row in result.failovers if row.still_ms is not None), default=None)
    unclean = sum(row.unclean for row in result.failovers)
    lines = [
        f"{result.count:,} events of {len(result.health)} partitions over {duration(result.end_ms - result.begin_ms)}",
        f"elections {len(result.failovers)} (unclean {unclean}), longest standstill at most {duration(longest)}",
        f"under-replicated {duration(result.total('under_replicated_ms'))}, "
        f"under min ISR {duration(result.total('under_min_isr_ms'))}, "
        f"leaderless {duration(result.total('leaderless_ms'))}",
        f"truncated {result.total('truncated'):,} records in {len(result.truncations)} truncations",
    ]
    if result.dropped:
        lines.append(f"{result.dropped:,} events were dropped by nodes whose buffer was full: the story has holes")
    details: dict[str, Any] = {
        "events": result.count,
        "begin_ms": result.begin_ms,
        "end_ms": result.end_ms,
        "failovers": [row.asDict() for row in result.failovers],
        "truncations": [row.asDict() for row in result.truncations],
        "health": [row.asDict() for row in result.health],
    }
    if options.report:
        details["report"] = report.save(options.report, _page(result, lines[0], unclean, longest))
        lines.append(f"report: {details['report']}")
    return Outcome(True, lines, details)


def _page(result: Timeline, about: str, unclean: int, longest: int | None) -> str:
    scale = Scale(result.begin_ms, result.end_ms)
    marks = _moments(result)
    truncated = result.total("truncated")
    cards = [
        Card(f"{len(result.failovers)}", "changes of a leader"),
        Card("–" if longest is None else f"≤ {duration(longest)}", "longest standstill of a partition"),
        Card(duration(result.total("under_replicated_ms")), "under-replicated, all partitions"),
        Card(
            duration(result.total("under_min_isr_ms")),
            "under min ISR",
            report.BAD if result.total("under_min_isr_ms") else report.GOOD,
        ),
        Card(f"{truncated:,}", "records truncated"),
        Card(f"{unclean}", "unclean elections", report.BAD if unclean else report.GOOD),
    ]
    verdict = (
        f"{unclean} unclean elections: committed records may be lost"
        if unclean
        else "No unclean election: whoever led had everything that was committed"
    )
    sections = [
        Section(
            "Who led when",
            "One row a partition, one colour a broker; grey is nobody. Seconds since the first event.",
            _leaders(result, scale, marks),
        ),
        Section(
            "In sync",
            "How many replicas were in sync; the colour says whether that was enough.",
            _in_sync(result, scale, marks),
        ),
    ]
    if result.positions:
        about_lines = "Committed offsets of the first partitions above; a flat line is a partition that stands still."
        sections.append(
            Section("High watermark", about_lines, charts.lines_over_time(result.positions, scale, marks=marks))
        )
    sections += _tables(result)
    return report.page("Timeline of the replicas", verdict, ok=not unclean, about=about, cards=cards, sections=sections)


def _moments(result: Timeline) -> list[Mark]:
    """When brokers went and came back; the first coming of a broker is no news."""
    gone: set[int] = set()
    marks = []
    for row in result.moments:
        if row.kind == "broker-fenced":
            gone.add(row.broker)
        if row.kind in _MARKED and row.broker in gone:
            marks.append(Mark(row.time_ms, _MARKED[row.kind].format(row.broker)))
    return marks


def _leaders(result: Timeline, scale: Scale, marks: Sequence[Mark]) -> str:
    rows: dict[str, list[Bar]] = {f"{topic}-{partition}": [] for topic, partition in result.drawn}
    brokers = set()
    for row in result.leaderships:
        name = f"{row.topic}-{row.partition}"
        if name in rows:
            text = "nobody" if row.leader < 0 else f"broker {row.leader}"
            tip = f"{text}, epoch {row.leader_epoch}, {duration(row.to_ms - row.from_ms)}" + (
                f": {row.reason}" if row.reason else ""
            )
            rows[name].append(Bar(row.from_ms, row.to_ms, text, charts.colour_of(row.leader), tip))
            brokers.add(row.leader)
    legend = {("nobody" if broker < 0 else f"broker {broker}"): charts.colour_of(broker) for broker in sorted(brokers)}
    return charts.rows_over_time(rows, scale, marks, legend)


def _in_sync(result: Timeline, scale: Scale, marks: Sequence[Mark]) -> str:
    rows: dict[str, list[Bar]] = {f"{topic}-{partition}": [] for topic, partition in result.drawn}
    for row in result.isrs:
        name = f"{row.topic}-{row.partition}"
        if name in rows:
            below = row.size < result.least.get(row.topic, 1)
            colour = _RED if below else _GREEN if row.size >= row.wanted else _AMBER
            who = "" if row.isr is None else f": {', '.join(map(str, row.isr))}"
            tip = f"{row.size} of {row.wanted} in sync{who}, {duration(row.to_ms - row.from_ms)}"
            rows[name].append(Bar(row.from_ms, row.to_ms, f"{row.size} of {row.wanted}", colour, tip))
    legend = {"all": _GREEN, "some missing": _AMBER, "below min.insync.replicas": _RED}
    return charts.rows_over_time(rows, scale, marks, legend)


def _tables(result: Timeline) -> list[Section]:
    failovers = [
        [
            clock(row.time_ms),
            f"{row.topic}-{row.partition}",
            _name(row.previous_leader),
            _name(row.leader),
            row.leader_epoch,
            duration(row.leaderless_ms),
            "–" if row.still_ms is None else f"≤ {duration(row.still_ms)}",
            row.reason,
        ]
        for row in result.failovers
    ]
    cut = [
        [clock(row.time_ms), f"{row.topic}-{row.partition}", row.node, row.offset, row.records, row.reason]
        for row in result.truncations
    ]
    healths = [
        [
            f"{row.topic}-{row.partition}",
            row.elections,
            duration(row.leaderless_ms),
            duration(row.under_replicated_ms),
            duration(row.under_min_isr_ms),
            row.truncated,
        ]
        for row in result.health
    ]
    still = (
        "Standstill: from the last told position of the old leader to the first of the new one. Positions are told "
        "once a second, so it is an upper bound."
    )
    return [
        Section(
            "Changes of leader",
            still,
            report.table(
                ["time (UTC)", "partition", "from", "to", "epoch", "leaderless", "standstill", "why"], failovers
            ),
        ),
        Section(
            "Truncations",
            "Records that a replica threw away to follow its leader: not committed, unless an election was unclean.",
            report.table(["time (UTC)", "partition", "node", "cut to offset", "records", "why"], cut),
        ),
        Section(
            "Health of each partition",
            "",
            report.table(
                ["partition", "elections", "leaderless", "under-replicated", "under min ISR", "truncated"], healths
            ),
        ),
    ]


def _name(broker: int | None) -> str:
    return "nobody" if broker is None or broker < 0 else f"broker {broker}"


PIPELINE = Pipeline(
    name="timeline",
    summary="what happened to the replicas, as tables and pictures",
    examples="""\
  tidelog pipeline timeline --report timeline.html                       all topics, all that is kept
  tidelog pipeline timeline --topics orders --report orders.html --tables ./tables

Who led when, how many replicas were in sync, how far the high watermark was, failovers, truncations, and how long each
partition was under-replicated or under min.insync.replicas: from the topic __replication_events, which Tidelog's nodes
write. --tables keeps every table as Parquet.""",
    options=(
        BOOTSTRAP,
        Option("topics", "topics to tell of (default: all)", metavar="T,…"),
        Option("report", "write a page of HTML", metavar="FILE"),
        Option("tables", "folder to write the tables to, as Parquet", metavar="PATH"),
        Option(
            "source",
            "our source, or Spark's own connector where its jars are",
            default="tidelog",
            choices=("tidelog", "kafka"),
        ),
    ),
    reads={events.TOPIC: RECORD_COLUMNS},
    writes={
        "events": events.EVENTS,
        "leaderships": events.LEADERSHIPS,
        "isrs": events.ISRS,
        "positions": events.POSITIONS,
        "failovers": events.FAILOVERS,
        "truncations": events.TRUNCATIONS,
        "health": events.HEALTH,
    },
    run=run,
)

if __name__ == "__main__":
    from tidelog.spark.pipelines.launch import main

    sys.exit(main(PIPELINE))
