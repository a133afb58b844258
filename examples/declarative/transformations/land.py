"""Topics into a table, as they are: a streaming table, which Spark brings up to date from where it was."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame

from tidelog.spark.pipelines import declared
from tidelog.spark.pipelines.values import ValueFormat, accepted, shape

spark = declared.session()


@dp.table
def records() -> DataFrame:
    """Every committed record of the topics, each once."""
    stream = (
        spark.readStream.format("tidelog")
        .option("kafka.bootstrap.servers", spark.conf.get("tidelog.bootstrap"))
        .option("subscribe", spark.conf.get("tidelog.topics"))
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    raw = ValueFormat()
    return accepted(shape(stream, raw, headers=False), raw)
