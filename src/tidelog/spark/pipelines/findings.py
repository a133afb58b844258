"""The ledger of the producers, the log and the lake, held against each other: plain functions on frames.

Between ledger and log a record is known by its value, which each producer sends once; between log and lake by its place
(topic, partition, offset). Every finding is one row of FINDINGS.
"""

from __future__ import annotations

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


def compare(
    ledger: DataFrame, log: DataFrame, lake: DataFrame | None, epochs: DataFrame, starts: DataFrame
) -> DataFrame:
    """Everything side by side, one row for each thing that the three know of, with its leader epoch.

    Columns: those of the ledger (`told` is the offset its producer was told), `offset` (null: not in the log), `at`
    (where it is or was said to be), `copy` (1 for the first of a value), `is_there` (some copy is where it was told to
    be), `before` (the sequence in front of it in the log), `times` and `landed` (how often it was landed, and as what).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    key = ["topic", "partition", "value"]
    rows = log.join(ledger.withColumnRenamed("offset", "told"), key, "full")
    rows = rows.withColumn("is_stored", f.col("offset").isNotNull())
    by_value = Window.partitionBy("topic", "value", "is_stored").orderBy("partition", "offset")
    rows = rows.withColumn("copy", f.row_number().over(by_value)).withColumn(
        "first_at", f.first("offset").over(by_value)
    )
    by_place = Window.partitionBy(*key, "is_stored")
    rows = rows.withColumn("is_there", f.max(f.col("offset").eqNullSafe(f.col("told"))).over(by_place))
    by_producer = Window.partitionBy("topic", "partition", "producer", "is_stored", f.col("copy") == 1).orderBy(
        "offset"
    )
    rows = rows.withColumn("before", f.lag("sequence").over(by_producer))
    if lake is None:
        rows = rows.withColumn("times", f.lit(None).cast("bigint")).withColumn("landed", f.lit(None).cast("string"))
    else:
        counted = lake.groupBy(*PLACE).agg(f.count("*").alias("times"), f.first("value").alias("landed"))
        rows = rows.join(counted, list(PLACE), "full").withColumn("is_stored", f.coalesce("is_stored", f.lit(False)))
    rows = rows.withColumn("at", f.when(f.col("told") >= 0, f.coalesce("offset", "told")).otherwise(f.col("offset")))
    return _with_epochs(rows, epochs).join(f.broadcast(starts), ["topic", "partition"], "left")


def findings_of(rows: DataFrame, *, with_lake: bool, with_bytes: bool = True) -> DataFrame:
    """What is wrong, and what is worth telling, in what `compare` made (FINDINGS)."""
    from pyspark.sql import functions as f

    column = f.col
    stored, acknowledged = column("is_stored"), column("outcome") == ACKNOWLEDGED
    sent, first = stored & column("producer").isNotNull(), column("copy") == 1
    kept = column("start").isNull() | column("at").isNull() | (column("at") >= column("start"))
    told = f.concat(f.lit("told offset "), column("told").cast("string"))
    error = f.when(column("error") != "", f.concat(f.lit(": "), "error")).otherwise("")
    found = [
        _when(~stored & acknowledged & kept, "lost", told),
        _when(sent & first & acknowledged & (column("told") >= 0) & ~column("is_there"), "moved", told),
        _when(sent & ~first, "duplicated", f.concat(f.lit("first at offset "), column("first_at").cast("string"))),
        _when(
            sent & first & (column("before") > column("sequence")),
            "reordered",
            f.concat(f.lit("behind sequence "), column("before").cast("string")),
        ),
        _when(stored & column("producer").isNull(), "unexpected", f.lit("")),
        _when(sent & first & ~acknowledged, "unasked", f.concat(f.lit("outcome "), "outcome", error)),
    ]
    if with_lake:
        times, landed = column("times"), column("landed")
        found += [
            _when(stored & times.isNull(), "not landed", f.lit("")),
            _when(times > 1, "landed twice", f.concat(times.cast("string"), f.lit(" times"))),
            _when(~stored & times.isNotNull() & kept, "landed unexpected", f.lit("")),
        ]
        differs = stored & times.isNotNull() & ~landed.eqNullSafe(column("value"))
        shown = f.concat(f.lit("landed as "), f.coalesce(f.substring(landed, 1, 80), f.lit("null")))
        found += [_when(differs, "landed differently", shown)] if with_bytes else []
    each = rows.withColumn("found", f.explode(f.array_compact(f.array(*found))))
    value = f.coalesce("value", "landed").alias("value")
    return each.select(
        "found.kind",
        "topic",
        "partition",
        "epoch",
        "producer",
        "sequence",
        f.col("at").alias("offset"),
        value,
        "found.detail",
    )


def summary_of(rows: DataFrame) -> DataFrame:
    """How many were acknowledged, are in the log and were landed, by partition, epoch and producer (SUMMARY)."""
    from pyspark.sql import functions as f

    is_acknowledged = (f.col("outcome") == ACKNOWLEDGED) & (f.col("copy") == 1)
    counted = rows.groupBy("topic", "partition", "epoch", "producer").agg(
        f.count_if(is_acknowledged).alias("acknowledged"),
        f.count_if("is_stored").alias("in_log"),
        f.count_if(f.col("is_stored") & f.col("times").isNotNull()).alias("landed"),
    )
    return counted.orderBy("topic", "partition", "epoch", "producer").select(*_names(SUMMARY))


def _with_epochs(rows: DataFrame, epochs: DataFrame) -> DataFrame:
    """Fill in the leader epoch that an offset belongs to now; null above the end of the log."""
    from pyspark.sql import functions as f

    named = epochs.withColumnRenamed("topic", "t").withColumnRenamed("partition", "p")
    holds = (
        (f.col("topic") == f.col("t"))
        & (f.col("partition") == f.col("p"))
        & (f.col("at") >= f.col("first"))
        & (f.col("at") < f.col("end"))
    )
    return rows.join(f.broadcast(named), holds, "left").drop("t", "p", "first", "end")


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


def _when(condition: Column, kind: str, detail: Column) -> Column:
    """A finding where the condition holds, else nothing."""
    from pyspark.sql import functions as f

    return f.when(condition, f.struct(f.lit(kind).alias("kind"), detail.alias("detail")))


def _names(columns: str) -> list[str]:
    return [part.split()[0] for part in columns.split(", ")]
