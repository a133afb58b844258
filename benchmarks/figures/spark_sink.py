"""Spark to a topic: our sink, exactly once, beside the official connector's, which is at least once.

    python -m benchmarks.figures.spark_sink 127.0.0.1:9092 DIRECTORY NUMBER RECORDS ROUNDS

is the driver, a process of its own; it prints one line of JSON.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from benchmarks import administration
from benchmarks.apart import Failed, measure_apart
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node

PARTITIONS = 3
RECORD_BYTES = 1_000
KEYS, WHO = ("keyed", "free"), ("ours", "official")


class SparkSink(Benchmark[Node]):
    """One micro-batch of a file source, keyed and without keys."""

    name: ClassVar[str] = "spark-sink"
    title: ClassVar[str] = "Spark: exactly-once sink"
    method: ClassVar[str] = (
        "Spark 4.2 with local[2] reads Parquet (1,000,000 rows of a key of 8 bytes and a value of 1 kB that does not"
        " compress) as a stream with AvailableNow and writes it to a new topic of three partitions: by"
        " `tidelog.spark.write_stream` in one transaction, and by the official connector 4.2.0 at least once, in the"
        " same session. A whole run of each does not count: whoever is first would pay for the JVM's compiling. Then"
        " they go by turns, each first as often as the other, and medians are compared. The time is that of the whole"
        " query, commit included; each topic is counted, and deleted when that is done."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("keyed_ratio", "official ÷ ours, 1,000,000 × 1 kB with keys", "×", higher_is_better=True, at_least=1.0),
        Figure("free_ratio", "official ÷ ours, the same without keys", "×", higher_is_better=True, at_least=1.0),
        Figure("keyed_ours_s", "exactly once, with keys", "s"),
        Figure("keyed_official_s", "official, at least once, with keys", "s"),
        Figure("free_ours_s", "exactly once, without keys", "s"),
        Figure("free_official_s", "official, at least once, without keys", "s"),
    )
    discarded_runs: ClassVar[int] = 0

    def prepare(self, node: Node) -> None:
        """The rows, written once."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_rows(self.directory / "rows", self._count)

    @property
    def _count(self) -> int:
        return self.scale.choose(1_000_000, 50_000)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Topics of its own, a session of its own."""
        rounds = self.scale.choose(2, 1)
        for turn in range(rounds + 1):
            for keys in KEYS:
                for who in WHO:
                    administration.create_topic(node, _topic(number, turn, keys, who), PARTITIONS)
        words = (node.bootstrap, self.directory, number, self._count, rounds)
        return measure_apart("benchmarks.figures.spark_sink", *words, timeout_s=3600)


def _topic(number: int, turn: int, keys: str, who: str) -> str:
    return f"sink-{number}-{turn}-{keys}-{who}"


def write_rows(directory: Path, count: int) -> None:
    """Parquet files that do not compress, in as many row groups as two cores like."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    if directory.exists():
        return
    directory.mkdir(parents=True)
    random = np.random.default_rng(7)
    step = 25_000
    for start in range(0, count, step):
        rows = min(step, count - start)
        values = random.bytes(rows * RECORD_BYTES)
        offsets = pa.py_buffer(np.arange(0, rows * RECORD_BYTES + 1, RECORD_BYTES, dtype=np.int32))
        table = pa.table(
            {
                "key": pa.array([f"{number:08d}" for number in range(start, start + rows)]),
                "value": pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(values)]),
            }
        )
        parquet.write_table(table, directory / f"{start:09d}.parquet", compression="none")


def drive(bootstrap: str, directory: Path, number: int, count: int, rounds: int) -> dict[str, float]:
    """The queries: a round that does not count, then those that do."""
    from confluent_kafka.admin import AdminClient

    import tidelog.spark
    from tools import fetch_spark_connector

    connector = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    scratch = directory / f"scratch-{uuid4()}"
    spark = tidelog.spark.session(
        "spark-sink",
        **{
            "spark.master": "local[2]",
            "spark.log.level": "ERROR",
            "spark.driver.memory": "2g",
            "spark.jars": ",".join(map(str, connector)),
            "spark.local.dir": str(scratch / "local"),
        },
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    taken: dict[str, list[float]] = {}
    try:
        for turn in range(rounds + 1):
            for keys in KEYS:
                for who in WHO if (number + turn) % 2 else reversed(WHO):
                    topic = _topic(number, turn, keys, who)
                    rows = spark.readStream.schema("key string, value binary").parquet(str(directory / "rows"))
                    chosen = rows if keys == "keyed" else rows.select("value")
                    begun_s = time.perf_counter()
                    start = _ours if who == "ours" else _official
                    start(chosen, bootstrap, topic, str(scratch / topic)).awaitTermination()
                    seconds = time.perf_counter() - begun_s
                    if turn:
                        taken.setdefault(f"{keys}_{who}_s", []).append(seconds)
                    _require_count(bootstrap, topic, count, markers=PARTITIONS if who == "ours" else 0)
                    admin.delete_topics([topic])[topic].result(120)
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    values = {key: statistics.median(seconds) for key, seconds in taken.items()}
    for keys in KEYS:
        values[f"{keys}_ratio"] = values[f"{keys}_official_s"] / values[f"{keys}_ours_s"]
    return values


def _ours(rows: Any, bootstrap: str, topic: str, checkpoint: str) -> Any:
    import tidelog.spark

    return tidelog.spark.write_stream(
        rows,
        bootstrap_servers=bootstrap,
        topic=topic,
        transactional_id=topic,
        checkpoint_location=checkpoint,
        trigger={"availableNow": True},
    )


def _official(rows: Any, bootstrap: str, topic: str, checkpoint: str) -> Any:
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _require_count(bootstrap: str, topic: str, count: int, *, markers: int) -> None:
    """That everything arrived: end offsets less the one marker a partition that a transaction leaves."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count", "isolation.level": "read_committed"})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), 30)[1] for each in range(PARTITIONS)]
    finally:
        consumer.close()
    if sum(ends) - markers != count:
        raise Failed(f"{topic} holds {sum(ends) - markers} records, not {count}")


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(drive(given[0], Path(given[1]), *map(int, given[2:]))))
