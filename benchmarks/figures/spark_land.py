"""Topics to a lake: `land` with our source, and the same `land` with the official connector's.

    python -m benchmarks.figures.spark_land 127.0.0.1:9092 DIRECTORY NUMBER RECORDS ROUNDS

is the driver, a process of its own; it prints one line of JSON.
"""

from __future__ import annotations

import json
import random
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
TOPIC = "land"
FORMATS = ("delta", "parquet")


class SparkLand(Benchmark[Node]):
    """One run of `land --once` over a topic, into a new folder each time."""

    name: ClassVar[str] = "spark-land"
    title: ClassVar[str] = "Spark: land a topic in a lake"
    method: ClassVar[str] = (
        "Spark 4.2 with local[2] runs `land --once` over 1,000,000 records of 1 kB that do not compress, in three"
        " partitions, into a new Delta table and into new Parquet files: with our source, and with the official"
        " connector 4.2.0 (`--source kafka`), all columns and headers, the same writeStream in the same session. A"
        " whole run of each does not count: whoever is first would pay for the JVM's compiling. Then they go by turns,"
        " each first as often as the other, and medians are compared. The time is that of the whole query with its"
        " commits; each table is counted."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("delta_ratio", "official ÷ ours, 1 GB into Delta", "×", higher_is_better=True, at_least=1.0),
        Figure("parquet_ratio", "official ÷ ours, 1 GB into Parquet", "×", higher_is_better=True, at_least=1.0),
        Figure("delta_ours_s", "our source into Delta", "s"),
        Figure("delta_official_s", "official source into Delta", "s"),
        Figure("parquet_ours_s", "our source into Parquet", "s"),
        Figure("parquet_official_s", "official source into Parquet", "s"),
    )
    discarded_runs: ClassVar[int] = 0

    def prepare(self, node: Node) -> None:
        """The topic, written once."""
        self.directory.mkdir(parents=True, exist_ok=True)
        administration.create_topic(node, TOPIC, PARTITIONS)
        write_topic(node.bootstrap, TOPIC, self._count)

    @property
    def _count(self) -> int:
        return self.scale.choose(1_000_000, 30_000)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """A session of its own."""
        rounds = self.scale.choose(2, 1)
        words = (node.bootstrap, self.directory, number, self._count, rounds)
        return measure_apart("benchmarks.figures.spark_land", *words, timeout_s=3600)


def write_topic(bootstrap: str, topic: str, count: int) -> None:
    """Values that do not compress, spread evenly."""
    from confluent_kafka import Producer

    noise = random.Random(7).randbytes(RECORD_BYTES * 1_000)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.kbytes": 200_000})
    for number in range(count):
        start = (number * 997) % (len(noise) - RECORD_BYTES)
        while True:
            try:
                producer.produce(topic, noise[start : start + RECORD_BYTES], key=b"%08d" % number, partition=number % 3)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(300):
        raise Failed(f"{topic} could not be written")


def drive(bootstrap: str, directory: Path, number: int, count: int, rounds: int) -> dict[str, float]:
    """Both sources into both formats: a round that does not count, then those that do."""
    import tidelog.spark
    from tidelog.spark.pipelines import jars, land
    from tools import fetch_spark_connector

    connector = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    delta = jars.fetch(jars.DELTA, jars.directory())
    scratch = directory / f"scratch-{uuid4()}"
    settings = {
        **land.settings(land.PIPELINE.options_of(path="x")),
        "spark.master": "local[2]",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "2g",
        "spark.jars": ",".join(map(str, [*connector, *delta])),
        "spark.local.dir": str(scratch / "local"),
    }
    spark = tidelog.spark.session("spark-land", **settings)
    taken: dict[str, list[float]] = {}
    try:
        for turn in range(rounds + 1):
            order = ("ours", "official") if (number + turn) % 2 else ("official", "ours")
            for table_format in FORMATS:
                for who in order:
                    path = scratch / f"{turn}-{table_format}-{who}"
                    seconds = _land(spark, bootstrap, path, table_format, who)
                    _require_count(spark, path, table_format, count)
                    shutil.rmtree(path)
                    if turn:
                        taken.setdefault(f"{table_format}_{who}_s", []).append(seconds)
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    values = {key: statistics.median(seconds) for key, seconds in taken.items()}
    for table_format in FORMATS:
        values[f"{table_format}_ratio"] = values[f"{table_format}_official_s"] / values[f"{table_format}_ours_s"]
    return values


def _land(spark: Any, bootstrap: str, path: Path, table_format: str, who: str) -> float:
    from tidelog.spark.pipelines import land
    from tidelog.spark.pipelines.progress import Silent

    given = {"bootstrap": bootstrap, "topics": TOPIC, "path": str(path), "format": table_format, "once": True}
    options = land.PIPELINE.options_of(**given, source="tidelog" if who == "ours" else "kafka")
    begun_s = time.perf_counter()
    land.run(spark, options, Silent())
    return time.perf_counter() - begun_s


def _require_count(spark: Any, path: Path, table_format: str, count: int) -> None:
    found = spark.read.format(table_format).load(str(path / "records")).count()
    if found != count:
        raise Failed(f"{path} holds {found} records, not {count}")


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(drive(given[0], Path(given[1]), *map(int, given[2:]))))
