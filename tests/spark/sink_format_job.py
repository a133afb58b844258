"""The counting stream of sink_job.py through `writeStream.format("tidelog")` itself, as a program of its own.

python -m tests.spark.sink_format_job BOOTSTRAP TOPIC CHECKPOINT TRANSACTIONAL_ID UNTIL [MASTER [NAME=VALUE …]]
"""

from __future__ import annotations

import contextlib
import sys

from pyspark.errors import StreamingQueryException

import tidelog.spark
from tests.spark.sink_job import counting, is_enough, session_of


def main() -> int:
    bootstrap, topic, checkpoint, transactional_id, until, *rest = sys.argv[1:]
    spark = session_of(rest)
    rows = tidelog.spark.by_partition(counting(spark), bootstrap_servers=bootstrap, topic=topic)
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": topic,
        "transactionalId": transactional_id,
        "checkpointLocation": checkpoint,
        "kafka.batch.size": "4000",
    }
    query = rows.writeStream.format("tidelog").options(**options).start()
    reached = -1
    while query.isActive and not (reached >= 0 and is_enough(until, reached)):
        with contextlib.suppress(StreamingQueryException):  # it is asked for below
            query.awaitTermination(0.2)
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > reached:
            reached = progress["batchId"]
            print(f"batch {reached}", flush=True)
    failure = query.exception()
    query.stop()
    spark.stop()
    if failure is not None:
        print(f"failed: {failure}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
