"""A client of Spark Connect as a program of its own: what works there, and what is refused with which words.

python -m tests.spark.connect_job BOOTSTRAP TOPIC COPY CHECKPOINT
"""

from __future__ import annotations

import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import tidelog.spark
from tidelog.errors import ConfigError

ROWS = 200


def main() -> int:
    bootstrap, topic, copy, checkpoint = sys.argv[1:]
    tidelog.spark.prepare_environment()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    spark = tidelog.spark.register(SparkSession.builder.remote("local[2]").getOrCreate())
    cluster = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(0, ROWS, 1, 2).selectExpr("cast(id as string) key", "concat('value-', id) value")
    placed = tidelog.spark.by_partition(rows, bootstrap_servers=bootstrap, topic=topic)
    placed.write.format("tidelog").options(**cluster, topic=topic).mode("append").save()
    committed = {**cluster, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    print(f"batch {spark.read.format('tidelog').options(**committed).load().count()}", flush=True)
    stream = spark.readStream.format("tidelog").options(**committed, startingOffsets="earliest").load()
    query = stream.writeStream.format("memory").queryName("seen").option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination(300)
    print(f"stream {spark.table('seen').count()}", flush=True)
    copy_by_format(stream, bootstrap, copy, checkpoint)
    copied = {**committed, "subscribe": copy}
    print(f"copied {spark.read.format('tidelog').options(**copied).load().count()}", flush=True)
    for name, attempt in (
        ("write", lambda: tidelog.spark.write(rows, bootstrap_servers=bootstrap, topic=topic)),
        (
            "write_stream",
            lambda: tidelog.spark.write_stream(
                stream.select("key", "value"),
                bootstrap_servers=bootstrap,
                topic=topic,
                transactional_id="id",
                checkpoint_location=f"{checkpoint}-sink",
            ),
        ),
    ):
        try:
            attempt()
        except ConfigError as error:
            print(f"{name} refused: {error}", flush=True)
    spark.stop()
    return 0


def copy_by_format(stream: DataFrame, bootstrap: str, copy: str, checkpoint: str) -> None:
    """`writeStream.format("tidelog")`: rows that are together, twice from one checkpoint; then rows that are not."""
    fields = stream.selectExpr("cast(key as string) key", "cast(value as string) value")
    together = tidelog.spark.by_partition(fields, bootstrap_servers=bootstrap, topic=copy)
    for name, rows in (("together", together), ("together", together), ("apart", fields.repartition(3))):
        sink = {"kafka.bootstrap.servers": bootstrap, "topic": copy, "transactionalId": name}
        writer = rows.writeStream.format("tidelog").options(**sink, checkpointLocation=f"{checkpoint}-{name}")
        try:
            print(f"{name} ended: {writer.trigger(availableNow=True).start().awaitTermination(300)}", flush=True)
        except PySparkException as error:
            print(f"{name} refused: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
