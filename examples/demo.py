"""The main job in one go: start a node, write to it, read everything back with Spark, and say what happened.

    make demo

The records are orders. Each is counted when the node acknowledges it; at the end Spark's own Kafka connector reads the
topic, and what it found is held against that count: nothing missing, nothing twice. Everything runs on this machine in
a temporary directory, and nothing is left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOPIC = "orders"
PARTITIONS = 3
CITIES = ("Bergen", "Cork", "Kiel", "Lisbon", "Porto", "Riga")
COMMAND_TIMEOUT_S = 120
QUIET = {"log_level": 3}
"""Of confluent-kafka: errors only, no news."""


class DemoFailed(Exception):
    """What was read is not what was acknowledged, or a step did not work; the text says which."""


class Stopped(BaseException):
    """SIGTERM came: clean up and go."""


def stop(number: int, frame: Any) -> None:
    """Leave by the way that cleans up."""
    raise Stopped


class Ledger:
    """What the node acknowledged: the number of every order, and the sum of each city."""

    def __init__(self) -> None:
        self.orders: set[int] = set()
        self.cents: Counter[str] = Counter()
        self.bytes = 0

    def add(self, order: int, city: str, cents: int, size: int) -> None:
        """One acknowledged order."""
        self.orders.add(order)
        self.cents[city] += cents
        self.bytes += size


@contextmanager
def step(title: str) -> Iterator[list[str]]:
    """Print a line for a step with its time; what the step appends to the list is printed under it."""
    print(f"{title} … ", end="", flush=True)
    started = time.perf_counter()
    notes: list[str] = []
    try:
        yield notes
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.perf_counter() - started:.2f} s", flush=True)
    for note in notes:
        print(f"    {note}", flush=True)


def tidelog(*words: str) -> str:
    """Run the `tidelog` command and return what it prints."""
    command = [sys.executable, "-m", "tidelog", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise DemoFailed(f"tidelog {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def free_port() -> int:
    """A port of this machine nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def create_topic(bootstrap: str) -> None:
    """Make the topic, as any Kafka client would."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)])[TOPIC].result(30)


def write_orders(bootstrap: str, count: int) -> Ledger:
    """Write orders with acks=all and an idempotent producer; return what was acknowledged."""
    from confluent_kafka import Producer

    ledger = Ledger()
    refused: list[str] = []
    draw = random.Random(7)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "compression.type": "lz4", **QUIET}
    )
    for order in range(count):
        city, cents = draw.choice(CITIES), draw.randrange(100, 50_000)
        value = json.dumps({"order": order, "city": city, "cents": cents}).encode()

        def acknowledged(
            error: Any, message: Any, order: int = order, city: str = city, cents: int = cents, size: int = len(value)
        ) -> None:
            if error is None:
                ledger.add(order, city, cents, size)
            else:
                refused.append(str(error))

        while True:
            try:
                producer.produce(TOPIC, value, key=city, on_delivery=acknowledged)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    unsent = producer.flush(60)
    if refused or unsent:
        raise DemoFailed(f"{len(refused)} records were refused and {unsent} not sent: {refused[:1]}")
    return ledger


@contextmanager
def errors_into(file: Path) -> Iterator[None]:
    """Send standard error, of processes started meanwhile too, into a file: Java greets at length."""
    kept = os.dup(2)
    with file.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def open_spark(scratch: Path) -> Any:
    """A local Spark with its own Kafka connector, quiet, writing only below `scratch`."""
    from pyspark.sql import SparkSession

    from tools import fetch_spark_connector

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        jars = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    except fetch_spark_connector.FetchError as error:
        raise DemoFailed(str(error)) from None
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tidelog-demo")
        .config("spark.jars", ",".join(str(jar) for jar in jars))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", str(PARTITIONS))
    )
    with errors_into(scratch / "spark.log"):
        return builder.getOrCreate()


def read_with_spark(spark: Any, bootstrap: str) -> list[Any]:
    """Read the whole topic with Spark's connector and sum it up by city."""
    from pyspark.sql import functions as f

    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
    )
    orders = records.select(
        f.from_json(f.col("value").cast("string"), "`order` bigint, city string, cents bigint").alias("order")
    ).select("order.*")
    sums = orders.groupBy("city").agg(
        f.count("*").alias("records"), f.countDistinct("order").alias("orders"), f.sum("cents").alias("cents")
    )
    rows: list[Any] = sums.orderBy("city").collect()
    return rows


def compare(ledger: Ledger, rows: list[Any]) -> list[str]:
    """Hold what Spark found against what was acknowledged; a table of it, or DemoFailed."""
    lines = [f"{'city':<10}{'orders':>10}{'sum':>16}"]
    lines += [f"{row.city:<10}{row.records:>10,}{row.cents / 100:>16,.2f}" for row in rows]
    records, orders = sum(row.records for row in rows), sum(row.orders for row in rows)
    missing, doubled = len(ledger.orders) - orders, records - orders
    lines.append(f"acknowledged {len(ledger.orders):,} · read {records:,} · missing {missing} · twice {doubled}")
    if missing or doubled or {row.city: row.cents for row in rows} != dict(ledger.cents):
        raise DemoFailed("what Spark read is not what was acknowledged:\n" + "\n".join(lines))
    return lines


def run_job(bootstrap: str, count: int, scratch: Path) -> None:
    """Write, read back and compare, against a cluster that is there."""
    with step(f"Creating the topic {TOPIC} with {PARTITIONS} partitions"):
        create_topic(bootstrap)
    with step(f"Writing {count:,} orders (confluent-kafka, acks=all, idempotent)") as notes:
        started = time.perf_counter()
        ledger = write_orders(bootstrap, count)
        took = time.perf_counter() - started
        notes.append(f"{len(ledger.orders):,} acknowledged, {len(ledger.orders) / took:,.0f} a second")
    with step("Starting Spark"):
        spark = open_spark(scratch)
    try:
        with step("Reading it all back with Spark's own Kafka connector") as notes:
            notes += compare(ledger, read_with_spark(spark, bootstrap))
    finally:
        spark.stop()


def main() -> int:
    """The whole demonstration; exit code 0 when every record that was acknowledged was read exactly once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000, metavar="N", help="orders to write (200000)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    scratch = Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
    data, port = scratch / "data", free_port()
    try:
        with step("Starting one Tidelog node") as notes:
            notes.append(tidelog("up", "--nodes", "1", "--port", str(port), "--dir", str(data), "--detach"))
        try:
            run_job(f"127.0.0.1:{port}", arguments.records, scratch)
            print(tidelog("status", "--dir", str(data)), flush=True)
        finally:
            with step("Stopping the node"):
                tidelog("down", "--dir", str(data))
        print("Every acknowledged record was read back exactly once.")
    except DemoFailed as failure:
        print(f"make demo: {failure}", file=sys.stderr)
        return 1
    except Exception:
        log = scratch / "spark.log"
        print(log.read_text(errors="replace") if log.exists() else "", file=sys.stderr)
        raise
    except (KeyboardInterrupt, Stopped):
        print("stopped; nothing is left behind", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
