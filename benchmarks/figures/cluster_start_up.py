"""From nothing to a topic that takes records."""

from __future__ import annotations

import shutil
import sys
import time
from typing import ClassVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.apart import Failed
from benchmarks.cluster import NODES, Cluster
from benchmarks.figures.start_up import IMPATIENT
from benchmarks.model import Benchmark, Figure
from tests.support.nodes import TidelogNode
from tests.support.ports import free_ports
from tests.support.processes import ManagedProcess


class ClusterStartUp(Benchmark[Cluster]):
    """Three processes, one topic, one record."""

    name: ClassVar[str] = "cluster-start-up"
    title: ClassVar[str] = "Three nodes from nothing to a writable topic"
    method: ClassVar[str] = (
        "Tidelog: `tidelog up --nodes 3` on a directory that does not exist. Kafka: three processes on directories"
        " formatted before (formatting, three JVMs one after the other, is not counted). Until a client that keeps"
        " asking has made a topic with three replicas and has a record acknowledged by all."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("seconds", "three nodes from nothing to a writable topic", "s", at_most=2),
    )
    nodes: ClassVar[int] = 3
    keeps_node: ClassVar[bool] = False

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """One start from nothing."""
        if node.peer == "tidelog":
            return {"seconds": self._tidelog(number)}
        for member in node.nodes.values():
            shutil.rmtree(member.data_directory, ignore_errors=True)
        node.prepare()
        started_s = time.perf_counter()
        node.launch()
        seconds = _until_writable(node.bootstrap, started_s)
        node.end()  # Kafka's last node would wait for a quorum to say goodbye to
        return {"seconds": seconds}

    def _tidelog(self, number: int) -> float:
        directory = self.directory / f"up-{number}"
        port = _ports_in_a_row()
        environment = TidelogNode(self.directory).environment()
        command = [sys.executable, "-m", "tidelog", "up", "--nodes", str(NODES), "--port", str(port)]
        started_s = time.perf_counter()
        process = ManagedProcess(
            [*command, "--dir", str(directory)], self.directory / f"up-{number}.log", environment=environment
        )
        try:
            return _until_writable(",".join(f"127.0.0.1:{port + each}" for each in range(NODES)), started_s)
        finally:
            process.stop()


def _until_writable(bootstrap: str, started_s: float) -> float:
    """Make a topic and write to it as soon as that goes; seconds since `started_s`."""
    while True:
        try:
            client = AdminClient({"bootstrap.servers": bootstrap, **_CONNECTING})
            client.create_topics([NewTopic("first", 1, NODES)], request_timeout=5)["first"].result(10)
            break
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                break
            if time.perf_counter() - started_s > 120:
                raise
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, **IMPATIENT})
    producer.produce("first", value=b"first", on_delivery=lambda error, _: failures.append(error) if error else None)
    if producer.flush(120) or failures:
        raise Failed(f"the first record was not stored: {failures}")
    return time.perf_counter() - started_s


_CONNECTING = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 10, "retry.backoff.ms": 10, "log_level": 0}


def _ports_in_a_row() -> int:
    while True:
        (first,) = free_ports(1)
        if first < 31_900:
            return first
