"""Topics and files to Spark: our sources beside the official connector's, in the same session on the same data.

    python -m benchmarks.figures.spark_source warm|cold|latency ARGUMENTS

is the driver of one measurement, a process of its own; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks import administration
from benchmarks.apart import Failed, measure_apart
from benchmarks.clients import LIST_SIZE, PRODUCER_SETTINGS
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import Node


@dataclass(frozen=True)
class Load:
    """A topic to read: so many partitions, records of so many bytes, compressed or not."""

    topic: str
    partitions: int
    records: int
    record_bytes: int
    compression: str = "none"


LOADS = (
    Load("kilobytes", 3, 1_000_000, 1_000),
    Load("hundreds", 3, 5_000_000, 100),
    Load("compressed", 3, 5_000_000, 100, "zstd"),
    Load("single", 1, 1_000_000, 1_000),
)
SMALLER = 20
"""With --quick: so many times fewer records."""


def _figures(key: str, what: str, at_least: float) -> tuple[Figure, ...]:
    return (
        Figure(f"{key}_ratio", f"official ÷ ours, {what}", "×", higher_is_better=True, at_least=at_least),
        Figure(f"{key}_ours_s", f"ours, {what}", "s"),
        Figure(f"{key}_official_s", f"official, {what}", "s"),
    )


class SparkSource(Benchmark[Node]):
    """Whole topics, warm; the first query of a session; a stream's latency."""

    name: ClassVar[str] = "spark-source"
    title: ClassVar[str] = "Spark: sources"
    method: ClassVar[str] = (
        'Spark 4.2 with local[2] reads whole topics into its `noop` sink, all columns, by `format("tidelog")` with CRCs'
        " checked, and by the official connector 4.2.0 with its defaults, in the same session, by turns, after a whole"
        " read of each that does not count. `tidelog_segments` reads the files of the topic of 1,000,000 × 1 kB and is"
        " compared with the official connector's read of that topic. The cold query is the first of a new session, of"
        " that topic too. Latency is from just before a record is produced (linger 0) until `foreachBatch` has its row,"
        " the default trigger, a record every 0.2 to 0.4 s, after a shorter stream of each. Columns are the broker read"
        " from."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        *_figures("kilobytes", "1,000,000 × 1 kB", 2),
        *_figures("hundreds", "5,000,000 × 100 B", 3),
        *_figures("compressed", "5,000,000 × 100 B, zstd", 2),
        *_figures("single", "one partition of 1 GB", 2.5),
        Figure("segments_ratio", "official ÷ `tidelog_segments`, 1 GB", "×", higher_is_better=True, at_least=2.5),
        Figure("segments_s", "`tidelog_segments`, 1 GB", "s"),
        *_figures("cold", "first query of a session", 1),
        *_figures("latency", "produced to row in foreachBatch, p50", 1),
    )
    discarded_runs: ClassVar[int] = 0

    def prepare(self, node: Node) -> None:
        """The topics, written once."""
        for load in LOADS:
            administration.create_topic(node, load.topic, load.partitions)
            produce(node.bootstrap, load, load.records // self.scale.choose(1, SMALLER))
        administration.create_topic(node, "latency", 1)

    def run(self, node: Node, number: int) -> dict[str, float]:
        """Four processes: the warm queries, two first queries, the streams."""
        files = str(node.data_directory)
        values = _drive("warm", node.bootstrap, files, str(number), str(self.scale.choose(2, 1)))
        for who in ("official", "ours") if number % 2 else ("ours", "official"):
            values |= _drive("cold", node.bootstrap, files, who)
        values |= _drive("latency", node.bootstrap, str(self.scale.choose(60, 15)), str(number))
        for key in (*(load.topic for load in LOADS), "cold", "latency"):
            values[f"{key}_ratio"] = values[f"{key}_official_s"] / values[f"{key}_ours_s"]
        values["segments_ratio"] = values["kilobytes_official_s"] / values["segments_s"]
        return values


def produce(bootstrap: str, load: Load, records: int) -> None:
    """Different records of text, so that compressing them is some work and gains something."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": load.compression} | PRODUCER_SETTINGS)
    values = [os.urandom(load.record_bytes).hex()[: load.record_bytes].encode() for _ in range(LIST_SIZE)]
    messages = [{"value": value} for value in values]
    left, turn = records, 0
    while left:
        group = messages[: min(left, LIST_SIZE)]
        accepted = 0
        while accepted < len(group):
            try:
                accepted += producer.produce_batch(load.topic, group[accepted:], partition=turn % load.partitions)
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
        left -= len(group)
        turn += 1
    if producer.flush(600):
        raise Failed(f"{load.topic}: not everything was acknowledged")


def _drive(*words: str) -> dict[str, float]:
    return measure_apart("benchmarks.figures.spark_source", *words, timeout_s=3600)


# --- the driver ---

FORMATS = {"ours": "tidelog", "official": "kafka"}


def _session(scratch: str) -> Any:
    import tidelog.spark
    from tools import fetch_spark_connector

    connector = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    return tidelog.spark.session(
        "spark-source",
        **{
            "spark.master": "local[2]",
            "spark.log.level": "ERROR",
            "spark.jars": ",".join(map(str, connector)),
            "spark.local.dir": scratch,
        },
    )


def _read_topic(spark: Any, who: str, bootstrap: str, topic: str) -> float:
    """Seconds of one whole read."""
    begun_s = time.perf_counter()
    reader = spark.read.format(FORMATS[who]).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader.load().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun_s


def _read_files(spark: Any, files: str, topic: str) -> float:
    begun_s = time.perf_counter()
    # Beside a running node the written-down watermark is some seconds old: to the end, so that all is read.
    reader = spark.read.format("tidelog_segments").option("subscribe", topic).option("upTo", "logEnd")
    reader.load(files).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun_s


def warm(spark: Any, bootstrap: str, files: str, number: str, rounds: str) -> dict[str, float]:
    """Every topic by both, by turns; the first round does not count, and the median of the others does."""
    taken: dict[str, list[float]] = {}
    for turn in range(int(rounds) + 1):
        order = ("ours", "official") if (int(number) + turn) % 2 else ("official", "ours")
        for load in LOADS:
            for who in order:
                seconds = _read_topic(spark, who, bootstrap, load.topic)
                if turn:
                    taken.setdefault(f"{load.topic}_{who}_s", []).append(seconds)
        seconds = _read_files(spark, files, LOADS[0].topic)
        if turn:
            taken.setdefault("segments_s", []).append(seconds)
    return {key: statistics.median(values) for key, values in taken.items()}


def cold(spark: Any, bootstrap: str, _files: str, who: str) -> dict[str, float]:
    """The first query of this session."""
    return {f"cold_{who}_s": _read_topic(spark, who, bootstrap, LOADS[0].topic)}


def latency(spark: Any, bootstrap: str, records: str, number: str) -> dict[str, float]:
    """One stream after the other, twice; the first two do not count, since the first of all warms Spark up."""
    order = ("ours", "official") if int(number) % 2 else ("official", "ours")
    for who in order:
        _latency_of(spark, who, bootstrap, int(records) // 2)
    return {f"latency_{who}_s": _latency_of(spark, who, bootstrap, int(records)) for who in reversed(order)}


def _latency_of(spark: Any, who: str, bootstrap: str, records: int) -> float:
    from confluent_kafka import Producer

    taken_s: list[float] = []
    arrived = threading.Semaphore(0)

    def take(frame: Any, _: int) -> None:
        rows = [float(bytes(row.value)) for row in frame.select("value").collect()]
        now_s = time.time()
        for sent_s in rows:
            taken_s.append(now_s - sent_s)
            arrived.release()

    stream = spark.readStream.format(FORMATS[who]).option("kafka.bootstrap.servers", bootstrap)
    with tempfile.TemporaryDirectory(prefix="latency-", ignore_cleanup_errors=True) as checkpoint:
        writer = stream.option("subscribe", "latency").load().writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", checkpoint).start()
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        pause = random.Random(7)
        warm_up = 10
        # The stream begins with what is written after it has started: until the first row is there, keep on writing.
        while not arrived.acquire(timeout=0.5):
            producer.produce("latency", b"%f" % time.time())
            producer.flush(10)
            if query.exception() is not None:
                raise Failed(str(query.exception()))
        for _ in range(warm_up + records):
            producer.produce("latency", b"%f" % time.time())
            producer.flush(10)
            time.sleep(pause.uniform(0.2, 0.4))
        deadline_s = time.monotonic() + 60
        while len(taken_s) < warm_up + records and time.monotonic() < deadline_s:
            time.sleep(0.05)
        query.stop()
    return statistics.median(taken_s[-records:])


COMMANDS: dict[str, Callable[..., dict[str, float]]] = {"warm": warm, "cold": cold, "latency": latency}


def main(command: str, *arguments: str) -> None:
    """One measurement."""
    scratch = tempfile.mkdtemp(prefix="spark-source-")
    spark = _session(scratch)
    try:
        print(json.dumps(COMMANDS[command](spark, *arguments)))
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
