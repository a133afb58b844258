"""The ledger of the producers, the log and the lake, held against each other: plain functions on frames.

Between ledger and log a record is known by its value, which each producer sends once; between log and lake by its place
(topic, partition, offset). Every finding is one row of FINDINGS.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tidelog.ledger import ACKNOWLEDGED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEDGER = (
    "producer string, sequence bigint, value string, topic string, partition int, offset bigint, "
    "outcome string, error string, time_ms bigint"
)
LOG = "topic string, partition int, offset bigint, value string"
LAKE = "topic string, partition int, offset bigint, value string"
"""`value` is null where the lake keeps parsed values only: places are compared, bytes are not."""
EPOCHS = "topic string, partition int, epoch int, first bigint, end bigint"
STARTS = "topic string, partition int, start bigint"
"""Where each partition of the log begins: what retention took away is not lost."""
FINDINGS = (
    "kind string, topic string, partition int, epoch int, producer string, sequence bigint, offset bigint, "
    "value string, detail string"
)
SUMMARY = "topic string, partition int, epoch int, producer string, acknowledged bigint, in_log bigint, landed bigint"

KINDS = {
    "lost": "acknowledged and not in the log",
    "moved": "in the log, but not at the offset that was acknowledged",
    "duplicated": "in the log more than once",
    "reordered": "in the log before a record its producer handed over earlier",
    "unexpected": "in the log, and no producer of the ledger sent it",
    "not landed": "in the log and not in the lake",
    "landed twice": "in the lake more than once",
    "landed unexpected": "in the lake and not in the log",
    "landed differently": "in the lake with other bytes than in the log",
}
"""What makes a verdict bad."""
ALLOWED = {"unasked": "in the log, though its producer was not told so (a retry, or an answer that was lost)"}
"""What is told and allowed: nobody promised that such a record is not there."""

PLACE = ("topic", "partition", "offset")


def ledger_against_log(ledger: DataFrame, log: DataFrame, starts: DataFrame) -> DataFrame:
    """What the producers were told and what the log holds."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    key = ["topic", "partition", "value"]
    acknowledged = ledger.where(f.col("outcome") == ACKNOWLEDGED)
    kept = acknowledged.join(starts, ["topic", "partition"], "left").where(
        f.col("start").isNull() | (f.col("offset") < 0) | (f.col("offset") >= f.col("start"))
    )
    lost = _finding(kept.join(log, key, "left_anti"), "lost", f.concat(f.lit("told offset "), "offset"))

    stored = log.join(ledger.withColumnRenamed("offset", "told"), key)
    at_told = log.select("topic", "partition", "value", f.col("offset"))
    moved = acknowledged.where(f.col("offset") >= 0).join(log.select(*key).distinct(), key, "left_semi")
    moved = moved.join(at_told, [*key, "offset"], "left_anti")
    moved = _finding(moved, "moved", f.concat(f.lit("told offset "), "offset", f.lit(", it is elsewhere")))

    by_value = Window.partitionBy("topic", "value").orderBy("partition", "offset")
    copies = stored.withColumn("copy", f.row_number().over(by_value)).withColumn(
        "one", f.first("offset").over(by_value)
    )
    duplicated = _finding(copies.where("copy > 1"), "duplicated", f.concat(f.lit("first at offset "), "one"))

    by_producer = Window.partitionBy("topic", "partition", "producer").orderBy("offset")
    firsts = copies.where("copy = 1").withColumn("before", f.lag("sequence").over(by_producer))
    reordered = _finding(firsts.where("before > sequence"), "reordered", f.concat(f.lit("behind sequence "), "before"))

    foreign = _finding(log.join(ledger.select(*key), key, "left_anti"), "unexpected", f.lit(""))
    told = f.concat(
        f.lit("outcome "), "outcome", f.when(f.col("error") != "", f.concat(f.lit(": "), "error")).otherwise("")
    )
    unasked = _finding(stored.where(f.col("outcome") != ACKNOWLEDGED), "unasked", told)
    return _union(lost, moved, duplicated, reordered, foreign, unasked)


def log_against_lake(log: DataFrame, lake: DataFrame, starts: DataFrame) -> DataFrame:
    """What the log holds and what was landed."""
    from pyspark.sql import functions as f

    place = list(PLACE)
    missing = _finding(log.join(lake.select(*place), place, "left_anti"), "not landed", f.lit(""))
    counts = lake.groupBy(*place).agg(f.count("*").alias("times"), f.first("value").alias("value"))
    twice = _finding(counts.where("times > 1"), "landed twice", f.concat("times", f.lit(" times")))
    kept = lake.join(starts, ["topic", "partition"], "left").where(
        f.col("start").isNull() | (f.col("offset") >= f.col("start"))
    )
    foreign = _finding(kept.join(log.select(*place), place, "left_anti"), "landed unexpected", f.lit(""))
    both = lake.withColumnRenamed("value", "landed").join(log, place)
    different = _finding(
        both.where(f.col("landed").isNotNull() & ~f.col("landed").eqNullSafe(f.col("value"))),
        "landed differently",
        f.concat(f.lit("landed as "), f.substring("landed", 1, 80)),
    )
    return _union(missing, twice, foreign, different)


def with_producers(findings: DataFrame, ledger: DataFrame) -> DataFrame:
    """Fill in who sent a record, for findings that know its value only."""
    from pyspark.sql import functions as f

    who = ledger.select(
        "topic", "partition", "value", f.col("producer").alias("sender"), f.col("sequence").alias("number")
    )
    return (
        findings.join(who, ["topic", "partition", "value"], "left")
        .withColumn("producer", f.coalesce("producer", "sender"))
        .withColumn("sequence", f.coalesce("sequence", "number"))
        .select(*_names(FINDINGS))
    )


def with_epochs(rows: DataFrame, epochs: DataFrame) -> DataFrame:
    """Fill in the leader epoch that an offset belongs to now; null above the end of the log."""
    from pyspark.sql import functions as f

    named = epochs.select(
        f.col("topic").alias("t"), f.col("partition").alias("p"), f.col("epoch").alias("found"), "first", "end"
    )
    holds = (
        (f.col("topic") == f.col("t"))
        & (f.col("partition") == f.col("p"))
        & (f.col("offset") >= f.col("first"))
        & (f.col("offset") < f.col("end"))
    )
    joined = rows.drop("epoch").join(f.broadcast(named), holds, "left")
    names = [*rows.columns, *([] if "epoch" in rows.columns else ["epoch"])]
    return joined.withColumnRenamed("found", "epoch").select(*names)


def summary(ledger: DataFrame, log: DataFrame, lake: DataFrame | None, epochs: DataFrame) -> DataFrame:
    """How many records were acknowledged, are in the log and were landed, by partition, epoch and producer."""
    from pyspark.sql import functions as f

    who = ledger.select("topic", "partition", "value", "producer")
    stored = log.join(who.dropDuplicates(["topic", "partition", "value"]), ["topic", "partition", "value"], "left")
    counted = [
        ledger.where(f.col("outcome") == ACKNOWLEDGED).select(*PLACE, "producer", f.lit("acknowledged").alias("what")),
        stored.select(*PLACE, "producer", f.lit("in_log").alias("what")),
    ]
    if lake is not None:
        landed = stored.join(lake.select(*PLACE).distinct(), list(PLACE), "left_semi")
        counted.append(landed.select(*PLACE, "producer", f.lit("landed").alias("what")))
    everything = with_epochs(reduce(lambda one, other: one.unionByName(other), counted), epochs)

    def times(what: str) -> Column:
        return f.count_if(f.col("what") == what).alias(what)

    grouped = everything.groupBy("topic", "partition", "epoch", "producer")
    rows = grouped.agg(times("acknowledged"), times("in_log"), times("landed"))
    return rows.orderBy("topic", "partition", "epoch", "producer").select(*_names(SUMMARY))


def silences(ledger: DataFrame) -> DataFrame:
    """The longest time between two acknowledgements of each partition: begin and length in milliseconds."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by_time = Window.partitionBy("topic", "partition").orderBy("time_ms")
    acknowledged = ledger.where(f.col("outcome") == ACKNOWLEDGED)
    gaps = acknowledged.withColumn("begin_ms", f.lag("time_ms").over(by_time))
    gaps = gaps.withColumn("length_ms", f.col("time_ms") - f.col("begin_ms"))
    longest = gaps.groupBy("topic", "partition").agg(
        f.max_by("begin_ms", "length_ms").alias("begin_ms"), f.max("length_ms").alias("length_ms")
    )
    return longest.orderBy(f.desc_nulls_last("length_ms"), "topic", "partition")


def _finding(rows: DataFrame, kind: str, detail: Column) -> DataFrame:
    """Rows as findings: what they do not know is null."""
    from pyspark.sql import functions as f

    columns = [f.lit(kind).alias("kind"), f.lit(None).cast("int").alias("epoch"), detail.cast("string").alias("detail")]
    columns += [f.col(name) for name in (*PLACE, "value")]
    for name, data_type in (("producer", "string"), ("sequence", "bigint")):
        columns.append(f.col(name) if name in rows.columns else f.lit(None).cast(data_type).alias(name))
    return rows.select(*columns).select(*_names(FINDINGS))


def _union(*frames: DataFrame) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _names(columns: str) -> list[str]:
    return [part.split()[0] for part in columns.split(", ")]
