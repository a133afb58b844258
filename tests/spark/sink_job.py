"""A query as a program of its own, so that its driver can be killed: a counting stream into a topic, exactly once.

python -m tests.spark.sink_job BOOTSTRAP TOPIC CHECKPOINT TRANSACTIONAL_ID UNTIL [MASTER [NAME=VALUE …]]
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import tidelog.spark
from tidelog.spark.sink_stream import write_stream
from tidelog.spark.transactions import BatchWritten

ROWS = 600
"""In each micro-batch."""


def main() -> int:
    bootstrap, topic, checkpoint, transactional_id, until, *rest = sys.argv[1:]
    spark = session_of(rest)
    done = threading.Event()

    def on_batch(result: BatchWritten) -> None:
        print(f"batch {result.batch_id} skipped={result.skipped} turns={result.turns}", flush=True)
        if is_enough(until, result.batch_id):
            done.set()

    query = write_stream(
        counting(spark),
        bootstrap_servers=bootstrap,
        topic=topic,
        transactional_id=transactional_id,
        checkpoint_location=checkpoint,
        on_batch=on_batch,
        options={"kafka.batch.size": "4000"},
    )
    while query.isActive and not done.wait(0.2):
        pass
    failure = query.exception()
    query.stop()
    spark.stop()
    if failure is not None and not done.is_set():
        print(f"failed: {failure}", flush=True)
        return 1
    return 0


def is_enough(until: str, batch_id: int) -> bool:
    """Whether the query has done its part: `until` is the number of its last batch, or a file that will be made."""
    return batch_id >= int(until) if until.isdigit() else Path(until).exists()


def session_of(rest: list[str]) -> SparkSession:
    """A small session on the master that the command names, with settings of the test's own."""
    conf = {
        "spark.master": rest[0] if rest else "local[2]",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),  # as the driver has them
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        **dict(pair.split("=", 1) for pair in rest[1:]),
    }
    return tidelog.spark.session("sink-job", **conf)


def counting(spark: SparkSession) -> DataFrame:
    """Numbers from 0 on, `ROWS` in each micro-batch, the same ones whenever a batch runs again."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 3).load()
    return rows.selectExpr("cast(value as string) key", "concat('value-', value) value")


if __name__ == "__main__":
    sys.exit(main())
