"""All sources on a Spark with executors of its own, as a program: counts what each of them reads.

python -m tests.spark.source_job BOOTSTRAP TOPIC SCRATCH MASTER [LOG_DIRECTORY]
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import DataFrame

import tidelog.spark


def main() -> int:
    bootstrap, topic, scratch, master, *directories = sys.argv[1:]
    conf = {
        "spark.master": master,
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    spark = tidelog.spark.session("source-job", **conf)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.read.format("tidelog").options(**options, minPartitions="6").load()
    # A worker of Python is a child of its executor's daemon: one of these in each executor.
    executors = rows.rdd.mapPartitions(lambda _: [os.getppid()]).distinct().count()
    print(f"batch {counted(rows)} executors {executors}", flush=True)
    stream = spark.readStream.format("tidelog").options(**options, maxOffsetsPerTrigger="5000").load()
    landed = f"{scratch}/landed"
    writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{scratch}/checkpoint")
    assert writer.trigger(availableNow=True).start(landed).awaitTermination(300)
    print(f"stream {counted(spark.read.parquet(landed))}", flush=True)
    for directory in directories:
        files = spark.read.format("tidelog_segments").options(subscribe=topic, upTo="logEnd").load(directory)
        print(f"files {files.count()}", flush=True)
    spark.stop()
    return 0


def counted(rows: DataFrame) -> str:
    """All rows, and how many places they are from."""
    return f"{rows.count()} distinct {rows.select('partition', 'offset').distinct().count()}"


if __name__ == "__main__":
    sys.exit(main())
