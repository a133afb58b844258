"""What happened to the replicas: one table from the log, the others from that one."""

from __future__ import annotations

import time

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

from tidelog.spark.pipelines import declared, events

spark = declared.session()
NOW_MS = int(time.time() * 1000)


@dp.materialized_view
def replication_events() -> DataFrame:
    """Everything the nodes told."""
    reader = spark.read.format("tidelog").option("kafka.bootstrap.servers", spark.conf.get("tidelog.bootstrap"))
    return events.events_of(reader.option("subscribe", events.TOPIC).load())


@dp.materialized_view
def partitions() -> DataFrame:
    """What each partition began with."""
    return events.partitions(spark.read.table("replication_events"))


@dp.materialized_view
def leaderships() -> DataFrame:
    """Who led when."""
    return events.leaderships(spark.read.table("replication_events"), spark.read.table("partitions"), NOW_MS)


@dp.materialized_view
def isrs() -> DataFrame:
    """How many replicas were in sync when."""
    return events.isrs(spark.read.table("replication_events"), spark.read.table("partitions"), NOW_MS)


@dp.materialized_view
def failovers() -> DataFrame:
    """Changes of a leader, and how long they took."""
    return events.failovers(spark.read.table("replication_events"), spark.read.table("leaderships"))


@dp.materialized_view
def truncations() -> DataFrame:
    """Records that a replica threw away."""
    return events.truncations(spark.read.table("replication_events"))
