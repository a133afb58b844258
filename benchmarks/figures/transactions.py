"""How many records a second go through small transactions, one after the other, and how long each takes.

    python -m benchmarks.figures.transactions 127.0.0.1:9092 TOPIC TRANSACTIONS

is the client, a process of its own; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any, ClassVar

from confluent_kafka import Producer

from benchmarks.apart import Failed, measure_apart
from benchmarks.cluster import Cluster
from benchmarks.model import Benchmark, Figure

PARTITIONS = 3
RECORDS = 100
"""Of each transaction."""
RECORD_BYTES = 1_000
WARM_UP = 20
WAIT_S = 60.0


class Transactions(Benchmark[Cluster]):
    """One producer that commits every hundred records."""

    name: ClassVar[str] = "transactions"
    title: ClassVar[str] = "Three nodes: transactions of 100 records"
    method: ClassVar[str] = (
        "A new topic with three partitions and three replicas; one producer process (confluent-kafka, linger 0) writes"
        " 100 records of 1 kB in turn to the partitions, commits, and begins the next transaction: 1,000 of them after"
        " 20 that do not count. The transaction log has its default of 50 partitions and three replicas."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("records_s", "records in transactions of 100, RF 3", "1/s", higher_is_better=True, ratio_at_least=1.5),
        Figure("transaction_ms", "a transaction of 100 records, begin to committed, p50", "ms"),
        Figure("slow_transaction_ms", "the same, p99", "ms"),
        Figure("cpu_ms", "CPU of all nodes for one transaction", "ms"),
    )
    nodes: ClassVar[int] = 3

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """A topic and a transactional id of its own."""
        topic = f"transactions-{number}"
        node.create_topic(topic, PARTITIONS)
        count = self.scale.choose(1_000, 50)
        cpu_s = node.cpu_seconds()
        values: dict[str, float] = measure_apart("benchmarks.figures.transactions", node.bootstrap, topic, count)
        values["cpu_ms"] = (node.cpu_seconds() - cpu_s) * 1_000 / (count + WARM_UP)
        node.delete_topic(topic)
        os.sync()
        return values


def produce(bootstrap: str, topic: str, count: int) -> dict[str, float]:
    """Transaction after transaction."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "transactional.id": topic,
        "linger.ms": 0,
        "delivery.report.only.error": True,
    }
    producer = Producer(settings)
    producer.init_transactions(WAIT_S)
    value = os.urandom(RECORD_BYTES)
    taken_ms: list[float] = []
    began_s = 0.0
    for number in range(WARM_UP + count):
        if number == WARM_UP:
            began_s = time.perf_counter()
        started_s = time.perf_counter()
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            share = RECORDS // PARTITIONS + (partition < RECORDS % PARTITIONS)
            accepted = producer.produce_batch(topic, [{"value": value}] * share, partition=partition)
            if accepted != share:
                raise Failed(f"only {accepted} of {share} records were taken")
        producer.commit_transaction(WAIT_S)
        if number >= WARM_UP:
            taken_ms.append((time.perf_counter() - started_s) * 1_000)
    seconds = time.perf_counter() - began_s
    return {
        "records_s": count * RECORDS / seconds,
        "transaction_ms": statistics.median(taken_ms),
        "slow_transaction_ms": sorted(taken_ms)[int(len(taken_ms) * 0.99)],
    }


if __name__ == "__main__":
    print(json.dumps(produce(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
