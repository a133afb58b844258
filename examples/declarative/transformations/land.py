"""Topics into a table, as they are: a streaming table, which Spark brings up to date from where it was."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import tidelog.spark
from tidelog.spark.pipelines.values import ValueFormat, accepted, shape

spark = tidelog.spark.register(SparkSession.active())


@dp.table(partition_cols=["topic", "day"])
def records() -> DataFrame:
    """Every record of the topics, each once."""
    stream = (
        spark.readStream.format("tidelog")
        .option("kafka.bootstrap.servers", spark.conf.get("tidelog.bootstrap"))
        .option("subscribe", spark.conf.get("tidelog.topics"))
        .option("startingOffsets", "earliest")
        .load()
    )
    raw = ValueFormat()
    return accepted(shape(stream, raw, headers=False), raw)
