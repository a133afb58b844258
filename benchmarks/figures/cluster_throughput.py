"""How many bytes a second go into three replicas, and come out again."""

from __future__ import annotations

import os
import time
from typing import ClassVar

from benchmarks import clients, wire_limit
from benchmarks.cluster import Cluster
from benchmarks.model import Benchmark, Figure

MEGABYTE = 1_000_000
PARTITIONS = 3
SMALL_BYTES = 100


class ClusterThroughput(Benchmark[Cluster]):
    """One producer process, then one consumer process."""

    name: ClassVar[str] = "cluster-throughput"
    title: ClassVar[str] = "Three nodes: produce and consume"
    method: ClassVar[str] = (
        "A new topic with three partitions and three replicas; one producer process, acks=all, no compression:"
        " 1,000,000 records of 1 kB, then 5,000,000 of 100 B to another. One consumer process reads the first topic"
        " from the start (`fetch.queue.backoff.ms=10`). Client, three nodes and everything else share the machine's"
        " cores. Before each run the plain-socket limit: 1 GB from a sender through a process that writes it and passes"
        " it on with sendfile to two more that write it, nothing else (`benchmarks/wire_limit.py`). Nodes go on running"
        " from run to run: the JVMs of Apache Kafka warm up and get faster, as the raw values show."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("produce_mb_s", "produce 1 kB, RF 3, acks=all", "MB/s", higher_is_better=True, ratio_at_least=3),
        Figure("of_wire_percent", "the same, of the plain-socket limit", "%", higher_is_better=True, at_least=50),
        Figure("wire_mb_s", "plain-socket limit in the same run", "MB/s", higher_is_better=True),
        Figure("small_records_s", "produce 100 B, RF 3, acks=all", "1/s", higher_is_better=True, ratio_at_least=1.5),
        Figure("consume_mb_s", "consume 1 kB, three nodes", "MB/s", higher_is_better=True, ratio_at_least=1),
        Figure("consume_cpu_s", "CPU of all nodes for 1 GB out", "s", ratio_at_most=1),
        Figure("produce_cpu_s", "CPU of all nodes for 1 GB in, three copies", "s"),
    )
    nodes: ClassVar[int] = 3

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """New topics, in and out, and away with them."""
        records = self.scale.choose(1_000_000, 50_000)
        values = {"wire_mb_s": wire_limit.measure(records * 1_000 // MEGABYTE, self.directory)}
        os.sync()
        large, small = f"large-{number}", f"small-{number}"
        node.create_topic(large, PARTITIONS)
        common = {"bootstrap": node.bootstrap, "partitions": PARTITIONS}
        for command in ("produce", "consume"):
            cpu_s = node.cpu_seconds()
            answer = clients.call(command, topic=large, records=records, size=1_000, **common)
            values[f"{command}_mb_s"] = answer["bytes"] / answer["seconds"] / MEGABYTE
            values[f"{command}_cpu_s"] = (node.cpu_seconds() - cpu_s) * 1_000_000 / records
        values["of_wire_percent"] = values["produce_mb_s"] / values["wire_mb_s"] * 100
        node.delete_topic(large)
        os.sync()  # what this left for the disk is not the next one's burden
        node.create_topic(small, PARTITIONS)
        answer = clients.call("produce", topic=small, records=records * 5, size=SMALL_BYTES, **common)
        values["small_records_s"] = answer["records"] / answer["seconds"]
        node.delete_topic(small)
        os.sync()
        return values


class ClusterMemory(Benchmark[Cluster]):
    """A fresh start each time; RSS of a node, the mean of the three."""

    name: ClassVar[str] = "cluster-memory"
    title: ClassVar[str] = "Three nodes: memory of each"
    method: ClassVar[str] = (
        "RSS of a node, the mean of three: 10 s after a start without clients, and after 1 GB (1,000,000 × 1 kB, three"
        " partitions, three replicas) was written and read back. Kafka with the heap its release starts with (1 GB)."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("idle_mb", "memory of one of three nodes, idle", "MB", at_most=45),
        Figure("loaded_mb", "memory of one of three nodes, after 1 GB through", "MB", at_most=90),
    )
    nodes: ClassVar[int] = 3
    keeps_node: ClassVar[bool] = False
    discarded_runs: ClassVar[int] = 0

    @classmethod
    def runs_of(cls, peer: str, runs: int) -> int:
        """It hardly varies."""
        return min(runs, 3)

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """Start, look, work, look."""
        node.start()
        time.sleep(self.scale.choose(10, 1))
        idle = node.resident_bytes()
        topic = f"memory-{number}"
        node.create_topic(topic, PARTITIONS)
        records = self.scale.choose(1_000_000, 50_000)
        for command in ("produce", "consume"):
            clients.call(command, bootstrap=node.bootstrap, topic=topic, partitions=PARTITIONS, records=records)
        loaded = node.resident_bytes()
        node.delete_topic(topic)
        node.stop()
        return {"idle_mb": idle / MEGABYTE, "loaded_mb": loaded / MEGABYTE}
