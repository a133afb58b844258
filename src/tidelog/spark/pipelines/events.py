"""The topic `__replication_events` as tables: plain functions on frames.

    events        what the nodes wrote, one row each
    leaderships   who led a partition from when to when; leader -1 is nobody
    isrs          how many replicas were in sync from when to when
    positions     where leader and high watermark stood, at most once a second
    failovers     changes of a leader, and how long the partition stood still
    truncations   records that a replica threw away to follow another

A partition's first leader and ISR are not told when a topic is made; they are what the first change says was before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "__replication_events"
EVENTS = (
    "time_ms bigint, node int, kind string, topic string, partition int, leader int, leader_epoch int, "
    "previous_leader int, isr array<int>, previous_isr array<int>, elr array<int>, high_watermark bigint, "
    "log_end_offset bigint, followers map<string,bigint>, replication_factor int, broker int, controller int, "
    "epoch bigint, offset bigint, records bigint, unclean boolean, reason string, dropped_before int"
)
LEADERSHIPS = "topic string, partition int, leader int, leader_epoch int, from_ms bigint, to_ms bigint, reason string"
ISRS = "topic string, partition int, size int, wanted int, isr array<int>, from_ms bigint, to_ms bigint"
POSITIONS = "topic string, partition int, time_ms bigint, leader int, high_watermark bigint, log_end_offset bigint"
FAILOVERS = (
    "topic string, partition int, time_ms bigint, previous_leader int, leader int, leader_epoch int, "
    "leaderless_ms bigint, still_ms bigint, unclean boolean, reason string"
)
TRUNCATIONS = (
    "topic string, partition int, time_ms bigint, node int, offset bigint, records bigint, leader int, reason string"
)
HEALTH = (
    "topic string, partition int, watched_ms bigint, leaderless_ms bigint, under_replicated_ms bigint, "
    "under_min_isr_ms bigint, elections bigint, truncated bigint"
)
_PLACE = ["topic", "partition"]


def events_of(records: DataFrame) -> DataFrame:
    """The events in the values of records; what somebody else wrote to the topic is left out."""
    from pyspark.sql import functions as f

    parsed = records.select(f.from_json(f.col("value").cast("string"), EVENTS).alias("event")).select("event.*")
    return parsed.where("kind is not null and time_ms is not null").select(*_names(EVENTS))


def partitions(events: DataFrame) -> DataFrame:
    """Every partition that something was told of (PARTITIONS)."""
    from pyspark.sql import functions as f

    made = (
        events.where("kind = 'topic-created'")
        .groupBy("topic")
        .agg(f.max("time_ms").alias("made_ms"), f.max("replication_factor").alias("made"))
    )
    counted = f.greatest(f.size("isr"), f.size("previous_isr"), f.size("followers") + 1)
    changed = f.col("kind").isin("leader-elected", "leader-lost")
    seen = f.col("kind") == "replica-positions"
    told = (
        events.where("topic is not null and partition is not null")
        .groupBy(*_PLACE)
        .agg(
            f.min("time_ms").alias("seen_ms"),
            f.max(counted).alias("seen"),
            f.min_by("previous_isr", f.when(f.col("previous_isr").isNotNull(), f.col("time_ms"))).alias("first_isr"),
            f.min_by(f.struct("previous_leader", "leader_epoch"), f.when(changed, f.col("time_ms"))).alias("before"),
            f.min_by(f.struct("leader", "leader_epoch"), f.when(seen, f.col("time_ms"))).alias("at_first"),
        )
    )
    leader = f.coalesce("before.previous_leader", "at_first.leader")
    epoch = f.coalesce(f.col("before.leader_epoch") - 1, "at_first.leader_epoch")
    return told.join(f.broadcast(made), "topic", "left").select(
        *_PLACE,
        f.least("made_ms", "seen_ms").alias("begin_ms"),  # of a null and a number it is the number
        f.coalesce("made", "seen").cast("int").alias("wanted"),
        "first_isr",
        leader.alias("first_leader"),
        epoch.alias("first_epoch"),
    )


def leaderships(events: DataFrame, known: DataFrame, end_ms: int) -> DataFrame:
    """Who led when (LEADERSHIPS). `known` is what `partitions` made."""
    from pyspark.sql import functions as f

    changes = events.where(f.col("kind").isin("leader-elected", "leader-lost"))
    initial = known.where("first_leader is not null").select(
        *_PLACE,
        f.col("first_leader").alias("leader"),
        f.col("first_epoch").alias("leader_epoch"),
        f.col("begin_ms").alias("time_ms"),
        f.lit("").alias("reason"),
    )
    later = changes.select(*_PLACE, "leader", "leader_epoch", "time_ms", "reason")
    return _spans(initial.unionByName(later), ["leader_epoch"], end_ms).select(*_names(LEADERSHIPS))


def isrs(events: DataFrame, known: DataFrame, end_ms: int) -> DataFrame:
    """How many were in sync when (ISRS). `known` is what `partitions` made."""
    from pyspark.sql import functions as f

    changes = events.where(
        f.col("kind").isin("leader-elected", "leader-lost", "isr-changed") & f.col("isr").isNotNull()
    )
    # Nothing was told of a partition whose ISR never changed: it is as many as it was made with.
    initial = known.select(
        *_PLACE,
        f.col("first_isr").alias("isr"),
        f.coalesce(f.size("first_isr"), f.col("wanted")).alias("size"),
        f.col("begin_ms").alias("time_ms"),
        f.lit(-1).alias("rank"),
    )
    # An election and a change of the ISR in one moment are one change: what it ended with is told last.
    rank = f.when(f.col("kind") == "isr-changed", 1).otherwise(0).alias("rank")
    later = changes.select(*_PLACE, "isr", f.size("isr").alias("size"), "time_ms", rank)
    spans = _spans(initial.unionByName(later), ["rank"], end_ms).where("to_ms > from_ms")
    return spans.join(known.select(*_PLACE, "wanted"), _PLACE).select(*_names(ISRS))


def positions(events: DataFrame) -> DataFrame:
    """Where partitions stood (POSITIONS)."""
    from pyspark.sql import functions as f

    return events.where("kind = 'replica-positions'").select(*[f.col(name) for name in _names(POSITIONS)])


def failovers(events: DataFrame, led: DataFrame) -> DataFrame:
    """Changes of leader (FAILOVERS), from the events and `leaderships`.

    `still_ms`: from the last time the old leader's high watermark was told to the first time the new leader's was.
    Positions are told once a second, so it is an upper bound.
    """
    from pyspark.sql import functions as f

    lost = (
        led.where("leader < 0").groupBy(*_PLACE, "to_ms").agg(f.sum(f.expr("to_ms - from_ms")).alias("leaderless_ms"))
    )
    columns = [*_PLACE, "time_ms", "previous_leader", "leader", "leader_epoch", "unclean", "reason"]
    elected = events.where("kind = 'leader-elected'").select(*columns)
    told = positions(events).select(*_PLACE, f.col("time_ms").alias("at_ms"), "high_watermark")
    around = elected.join(told, _PLACE, "left")
    before = f.max(f.when(f.col("at_ms") <= f.col("time_ms"), f.struct("at_ms", "high_watermark")))
    after = f.min(f.when(f.col("at_ms") > f.col("time_ms"), f.struct("at_ms", "high_watermark")))
    stood = around.groupBy(*columns).agg(before.alias("before"), after.alias("after"))
    joined = stood.join(lost.withColumnRenamed("to_ms", "time_ms"), [*_PLACE, "time_ms"], "left")
    return joined.select(
        *("topic", "partition", "time_ms", "previous_leader", "leader", "leader_epoch"),
        f.coalesce("leaderless_ms", f.lit(0)).cast("bigint").alias("leaderless_ms"),
        (f.col("after.at_ms") - f.col("before.at_ms")).alias("still_ms"),
        f.coalesce("unclean", f.lit(False)).alias("unclean"),
        "reason",
    ).select(*_names(FAILOVERS))


def truncations(events: DataFrame) -> DataFrame:
    """What replicas threw away (TRUNCATIONS); one that begins again is told without a number of records."""
    from pyspark.sql import functions as f

    cut = events.where(f.col("kind").isin("log-truncated", "log-restarted"))
    return cut.select(*[f.col(name) for name in _names(TRUNCATIONS)])


def health(in_sync: DataFrame, led: DataFrame, cut: DataFrame, min_isr: DataFrame) -> DataFrame:
    """How long each partition was without leader, without some replica, and below min.insync.replicas (HEALTH).

    From `isrs`, `leaderships` and `truncations`; `min_isr` has a row (topic, least) for each topic with such a setting.
    """
    from pyspark.sql import functions as f

    length = f.col("to_ms") - f.col("from_ms")
    replicated = (
        in_sync.join(f.broadcast(min_isr), "topic", "left")
        .groupBy(*_PLACE)
        .agg(
            f.sum(length).alias("watched_ms"),
            f.sum(f.when(f.col("size") < f.col("wanted"), length).otherwise(0)).alias("under_replicated_ms"),
            f.sum(f.when(f.col("size") < f.coalesce("least", f.lit(1)), length).otherwise(0)).alias("under_min_isr_ms"),
        )
    )
    leaderless = f.col("leader") < 0
    by_leader = led.groupBy(*_PLACE).agg(
        f.sum(f.when(leaderless, length).otherwise(0)).alias("leaderless_ms"),
        f.count_if((f.col("reason") != "") & ~leaderless).alias("elections"),
    )
    thrown = cut.groupBy(*_PLACE).agg(f.sum("records").alias("truncated"))
    joined = replicated.join(by_leader, _PLACE, "left").join(thrown, _PLACE, "left")
    return joined.na.fill(0).orderBy(*_PLACE).select(*_names(HEALTH))


def _spans(rows: DataFrame, then_by: list[str], end_ms: int) -> DataFrame:
    """Each row holds until the next one of its partition."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy(*_PLACE).orderBy("time_ms", *then_by)
    following = f.lead("time_ms").over(order)
    last = f.greatest(f.lit(end_ms), "time_ms")
    return rows.withColumn("to_ms", f.coalesce(following, last)).withColumnRenamed("time_ms", "from_ms")


def _names(columns: str) -> list[str]:
    return [part.split()[0] for part in columns.split(", ")]
