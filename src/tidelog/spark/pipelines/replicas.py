"""`replicas`: every replica's files, record by record, below what is committed.

Each replica is held against the one of its partition that knows the most committed records, over the offsets that both
have and both know to be committed. Of compacted topics the last value of each key is compared: when a node cleans its
log is its own affair.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError
from tidelog.spark.pipelines import report
from tidelog.spark.pipelines.declaration import Option, Options, Outcome, Pipeline, words
from tidelog.spark.pipelines.failures import PipelineError, reason_of
from tidelog.spark.pipelines.progress import Progress, Step
from tidelog.spark.pipelines.report import Card, Section

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = (
    "node int, topic string, partition int, offset bigint, digest bigint, key binary, value binary, leader_epoch int, "
    "timestamp timestamp"
)
"""What is compared; `digest` is of everything that a record and its batch say."""
BOUNDS = "node int, topic string, partition int, reference int, low bigint, high bigint"
"""Which replica is held against which, and over which offsets."""
DIFFERENCES = (
    "node int, reference int, topic string, partition int, differing bigint, offset bigint, here string, there string"
)
_DIGESTED = (
    *("timestamp", "timestampType", "headers", "leader_epoch", "producer_id", "producer_epoch", "sequence"),
    *("is_transactional", "is_control"),
)
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Replica:
    """One replica's folder: how far it is committed, and where it begins."""

    node: int
    topic: str
    partition: int
    path: str
    start: int
    high_watermark: int


@dataclass(frozen=True)
class Comparison:
    """What came out for one replica; `offset` is None when it is identical to the other."""

    bound: Any
    offset: int | None = None
    differing: int = 0
    here: str = ""
    there: str = ""
    damage: str = ""

    @property
    def text(self) -> str:
        """For people."""
        bound = self.bound
        place = f"{bound.topic}-{bound.partition}: nodes {bound.reference} and {bound.node}"
        if self.offset is None:
            return f"{place} are identical over {bound.high - bound.low:,} offsets up to {bound.high:,}"
        told = f"{place} differ from offset {self.offset:,} on ({self.differing:,} records)"
        damaged = f"; {self.damage}" if self.damage else ""
        return f"{told}: {bound.reference} has {self.there}, {bound.node} has {self.here}{damaged}"


def run(spark: SparkSession, options: Options, progress: Progress) -> Outcome:
    """Find the replicas, read them all, compare."""
    directories = directories_of(options)
    topics = words(options.topics)
    found = find_replicas(directories, topics)
    compacted = set(words(options.compacted)) | compacted_topics(options.bootstrap, {each.topic for each in found})
    bounds = bounds_of(found)
    if not bounds:
        raise PipelineError("no partition has two replicas to compare here")
    progress.show(Step(0, note=f"comparing {len(bounds)} pairs of replicas"))
    frame = spark.createDataFrame(bounds, BOUNDS)
    used = {Path(each.path).parent for each in found}  # a node may have none of these topics
    read = {node: [path for path in paths if Path(path).absolute() in used] for node, paths in directories.items()}
    records = read_records(spark, read, sorted({each.topic for each in found}))
    plain = differences(records, frame.where(~frame.topic.isin(sorted(compacted))))
    latest = differences_of_latest(records, frame.where(frame.topic.isin(sorted(compacted))))
    rows = plain.unionByName(latest).collect() if compacted else plain.collect()
    results = _comparisons(spark, frame.orderBy("topic", "partition", "node").collect(), rows, found)
    return _outcome(results, options)


def directories_of(options: Options) -> dict[int, list[str]]:
    """The data directories of each node."""
    if bool(options.dir) == bool(options.replicas):
        raise ConfigError("replicas reads --dir or --replicas: name one of them")
    if options.dir:
        found = {
            int(path.name.removeprefix("node-")): [str(path / "data")]
            for path in sorted(Path(options.dir).glob("node-*"))
            if path.name.removeprefix("node-").isdigit() and (path / "data").is_dir()
        }
        if not found:
            raise ConfigError(f"--dir {options.dir} is no directory of a local cluster: there is no node-1/data in it")
        return found
    directories: dict[int, list[str]] = {}
    for word in words(options.replicas):
        node, equals, path = word.partition("=")
        if not equals or not node.isdigit() or not Path(path).is_dir():
            raise ConfigError(f"--replicas {word!r} is not NODE=DIRECTORY of a log directory that is here")
        directories.setdefault(int(node), []).append(path)
    return directories


def find_replicas(directories: Mapping[int, Sequence[str]], topics: Sequence[str]) -> list[Replica]:
    """Every replica of the topics, by node; ConfigError when a topic is nowhere."""
    from tidelog.spark.segments_files import find_folders, high_watermark

    found = []
    for node, paths in directories.items():
        for path in paths:
            try:
                folders = find_folders([path], topics, None)
            except ConfigError:  # this node has none of them
                continue
            for folder in folders:
                segments = folder.segments()
                if not segments:
                    continue
                try:
                    committed = high_watermark(folder)
                except ConfigError:  # so new that its node has not written down yet how far it is
                    committed = 0
                start = segments[0][0]
                found.append(Replica(node, folder.topic, folder.partition, str(folder.path), start, committed))
    missing = sorted(set(topics) - {each.topic for each in found})
    if missing or not found:
        raise ConfigError(f"no node has a replica of {', '.join(missing) or 'anything'} in its directory")
    return found


def bounds_of(found: Sequence[Replica]) -> list[tuple[int, str, int, int, int, int]]:
    """Each replica against the one of its partition that knows the most to be committed (rows of BOUNDS)."""
    by_partition: dict[tuple[str, int], list[Replica]] = {}
    for replica in found:
        by_partition.setdefault((replica.topic, replica.partition), []).append(replica)
    rows = []
    for held in by_partition.values():
        reference = max(held, key=lambda each: (each.high_watermark, -each.node))
        for replica in held:
            if replica.node != reference.node:
                low = max(replica.start, reference.start)
                high = max(low, replica.high_watermark)
                rows.append((replica.node, replica.topic, replica.partition, reference.node, low, high))
    return rows


def compacted_topics(bootstrap: str | None, topics: set[str]) -> set[str]:
    """Topics with cleanup.policy=compact, asked of a cluster where one is named."""
    if not bootstrap:
        return set()
    from tidelog.client.admin import ResourceType, describe_configs
    from tidelog.spark.pipelines import cluster

    client = cluster.connect(bootstrap)
    try:
        return {
            topic
            for topic in topics & client.metadata.topics.keys()
            for entry in describe_configs(client, ResourceType.TOPIC, topic)
            if entry.name == "cleanup.policy" and "compact" in (entry.value or "")
        }
    finally:
        client.close()


def read_records(spark: SparkSession, directories: Mapping[int, Sequence[str]], topics: Sequence[str]) -> DataFrame:
    """The records of all replicas (RECORDS); what is damaged is missing, so that the rest can be compared."""
    from pyspark.sql import functions as f

    frames = []
    for node, paths in directories.items():
        for path in paths:
            reader = spark.read.format("tidelog_segments").option("subscribe", ",".join(topics))
            rows = reader.option("onCorruption", "skip").option("includeControl", "true").load(path)
            # A hash passes over nulls, so that a key and a value could change places unnoticed.
            digest = f.xxhash64("key", f.isnull("key"), "value", f.isnull("value"), *_DIGESTED)
            named = rows.withColumn("node", f.lit(node)).withColumn("digest", digest)
            frames.append(named.select(*_names(RECORDS)))
    return reduce(lambda one, other: one.unionByName(other), frames)


def differences(records: DataFrame, bounds: DataFrame) -> DataFrame:
    """Replicas that differ, with the first offset and both sides (DIFFERENCES)."""
    from pyspark.sql import functions as f

    here, there = _sides(records, bounds)
    place = ["node", "reference", "topic", "partition", "offset"]
    both = (
        here.withColumnRenamed("text", "here")
        .withColumnRenamed("digest", "digest_here")
        .join(there.withColumnRenamed("text", "there").withColumnRenamed("digest", "digest_there"), place, "full")
    )
    differing = both.where(~f.col("digest_here").eqNullSafe(f.col("digest_there")))
    return _first(differing)


def differences_of_latest(records: DataFrame, bounds: DataFrame) -> DataFrame:
    """The same for compacted topics: the last value of each key, where it has one."""
    from pyspark.sql import functions as f

    here, there = _sides(records, bounds)

    def latest(side: DataFrame, name: str) -> DataFrame:
        last = side.groupBy("node", "reference", "topic", "partition", "key").agg(
            f.max("offset").alias(f"{name}_offset"),
            f.max_by(f.struct("value", "text"), "offset").alias(name),
        )
        return last.where(f.col(f"{name}.value").isNotNull())  # a tombstone may be gone already, or not yet

    keyed = ["node", "reference", "topic", "partition", "key"]
    both = latest(here, "here").join(latest(there, "there"), keyed, "full")
    differing = both.where(~f.col("here.value").eqNullSafe(f.col("there.value")))
    offset = f.least("here_offset", "there_offset").alias("offset")
    shown = [f.col("here.text").alias("here"), f.col("there.text").alias("there")]
    return _first(differing.select("node", "reference", "topic", "partition", offset, *shown))


def _sides(records: DataFrame, bounds: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The records of each replica and those of its reference, both within the offsets that are compared."""
    from pyspark.sql import functions as f

    value = f.coalesce(f.substring(f.col("value").cast("string"), 1, _SHOWN_CHARACTERS), f.lit("null"))
    key = f.coalesce(f.substring(f.col("key").cast("string"), 1, _SHOWN_CHARACTERS), f.lit("null"))
    text = f.concat(f.lit("key "), key, f.lit(" value "), value, f.lit(" epoch "), f.col("leader_epoch").cast("string"))
    columns = ["topic", "partition", "offset", "digest", "key", "value", "text"]
    rows = records.withColumn("text", text).select("node", *columns)
    within = (f.col("offset") >= f.col("low")) & (f.col("offset") < f.col("high"))
    small = f.broadcast(bounds)
    here = rows.join(small, ["node", "topic", "partition"]).where(within).select("node", "reference", *columns)
    of_reference = rows.withColumnRenamed("node", "reference")
    there = of_reference.join(small, ["reference", "topic", "partition"]).where(within)
    return here, there.select("node", "reference", *columns)


def _first(differing: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    missing = f.lit("no sound record")
    grouped = differing.groupBy("node", "reference", "topic", "partition").agg(
        f.count("*").alias("differing"),
        f.min_by(f.struct("offset", "here", "there"), "offset").alias("first"),
    )
    return grouped.select(
        *("node", "reference", "topic", "partition", "differing", "first.offset"),
        f.coalesce("first.here", missing).alias("here"),
        f.coalesce("first.there", missing).alias("there"),
    )


def _comparisons(
    spark: SparkSession, bounds: Sequence[Any], rows: Sequence[Any], found: Sequence[Replica]
) -> list[Comparison]:
    by_pair = {(row.node, row.topic, row.partition): row for row in rows}
    paths = {(each.node, each.topic, each.partition): each.path for each in found}
    results = []
    for bound in bounds:
        row = by_pair.get((bound.node, bound.topic, bound.partition))
        if row is None:
            results.append(Comparison(bound))
            continue
        suspects = [paths[node, bound.topic, bound.partition] for node in (bound.reference, bound.node)]
        damage = "; ".join(filter(None, (_damage(spark, path) for path in suspects)))
        results.append(Comparison(bound, row.offset, row.differing, row.here, row.there, damage))
    return results


def _damage(spark: SparkSession, path: str) -> str:
    """What is wrong with a replica's files by themselves; empty when every checksum is right."""
    try:
        spark.read.format("tidelog_segments").option("onCorruption", "fail").load(path).count()
    except Exception as error:  # whatever Spark wraps it in
        return reason_of(error).partition("; onCorruption")[0]
    return ""


def _outcome(results: Sequence[Comparison], options: Options) -> Outcome:
    differing = [each for each in results if each.offset is not None]
    compared = sum(each.bound.high - each.bound.low for each in results)
    lines = [each.text for each in results]
    pairs = f"{len(results)} pairs of replicas, {compared:,} committed offsets"
    verdict = f"{pairs}: identical" if not differing else f"{pairs}: {len(differing)} pairs DIFFER"
    details: dict[str, Any] = {
        "pairs": len(results),
        "offsets": compared,
        "differences": [
            {
                **each.bound.asDict(),
                "offset": each.offset,
                "records": each.differing,
                "here": each.here,
                "there": each.there,
                "damage": each.damage,
            }
            for each in differing
        ],
    }
    if options.report:
        details["report"] = report.save(options.report, _page(results, verdict, ok=not differing, compared=compared))
        lines.append(f"report: {details['report']}")
    return Outcome(not differing, [*lines, verdict], details)


def _page(results: Sequence[Comparison], verdict: str, *, ok: bool, compared: int) -> str:
    differing = [each for each in results if each.offset is not None]
    rows = [
        [
            *(f"{each.bound.topic}-{each.bound.partition}", each.bound.reference, each.bound.node),
            *(each.bound.low, each.bound.high, "identical" if each.offset is None else f"differs from {each.offset:,}"),
        ]
        for each in results
    ]
    sides = [
        [
            f"{each.bound.topic}-{each.bound.partition}",
            each.offset,
            each.bound.reference,
            each.there,
            each.bound.node,
            each.here,
            each.damage,
        ]
        for each in differing
    ]
    cards = [
        Card(f"{len(results)}", "pairs compared"),
        Card(f"{compared:,}", "committed offsets"),
        Card(f"{len(differing)}", "pairs that differ", report.BAD if differing else report.GOOD),
    ]
    sections = []
    if sides:
        headings = ["partition", "first offset", "node", "has", "node", "has", "damage"]
        sections.append(
            Section(
                "Where they differ", "The first offset of each pair, with both sides.", report.table(headings, sides)
            )
        )
    headings = ["partition", "node", "node", "from offset", "up to", "verdict"]
    sections.append(
        Section("All pairs", "Over the offsets that both know to be committed.", report.table(headings, rows))
    )
    return report.page(
        "Replicas", verdict, ok=ok, about="Segment files, record by record", cards=cards, sections=sections
    )


def _names(columns: str) -> list[str]:
    return [part.split()[0] for part in columns.split(", ")]


PIPELINE = Pipeline(
    name="replicas",
    summary="every replica's files, compared below what is committed",
    examples="""\
  tidelog pipeline replicas --dir ./data --topics orders                 a local cluster, running or not
  tidelog pipeline replicas --replicas 1=/srv/one,2=/srv/two --report replicas.html
  tidelog pipeline replicas --dir ./data --compacted profiles            the last value of each key there

No broker is asked: the files are read up to the high watermark that each node wrote down. Exit code 0 when all are
identical, 1 when not; then the first offset that differs is shown, with both sides, and what is damaged.""",
    options=(
        Option("dir", "directory of a local cluster, as tidelog up made it", metavar="DIR"),
        Option("replicas", "log directories by node", metavar="NODE=DIR,…"),
        Option("topics", "topics to compare (default: all but internal ones)", metavar="T,…"),
        Option("compacted", "topics of which only the last value of a key counts", metavar="T,…"),
        Option("bootstrap", "ask this cluster which topics are compacted", metavar="HOST:PORT,…"),
        Option("report", "write a page of HTML", metavar="FILE"),
    ),
    reads={"segments": RECORDS, "bounds": BOUNDS},
    writes={"differences": DIFFERENCES},
    run=run,
)

if __name__ == "__main__":
    from tidelog.spark.pipelines.launch import main

    sys.exit(main(PIPELINE))
