"""A client of Spark Connect as a program of its own: what works there, and what is refused with which words.

python -m tests.spark.connect_job BOOTSTRAP TOPIC CHECKPOINT
"""

from __future__ import annotations

import os
import sys

import tidelog.spark
from tidelog.errors import ConfigError

ROWS = 200


def main() -> int:
    bootstrap, topic, checkpoint = sys.argv[1:]
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


if __name__ == "__main__":
    sys.exit(main())
