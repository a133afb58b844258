"""Clusters of real processes, and a load on one topic that is judged in the end."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tidelog.client.connection import Connection
from tidelog.ledger import Entry
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.judge import Violation, judge_ledger
from tidelog.verify.workload import RETRY_SETTINGS, Ledger, NumberedProducer, read_final_log
from tidelog.wire.message import Message

WAIT_S = 60.0


@contextmanager
def cluster_of(nodes: int = 3, *, controllers: int | None = None, **settings: str) -> Iterator[LocalCluster]:
    """A cluster in service; what its nodes printed is shown when the test fails."""
    chosen = {
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "300",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    with tempfile.TemporaryDirectory(prefix="tidelog-cluster-") as directory:
        with LocalCluster(directory, nodes, controllers=controllers, settings=chosen) as cluster:
            try:
                cluster.start()
                cluster.wait_ready(WAIT_S)
                yield cluster
                cluster.require_alive()
            except BaseException:
                for node_id in cluster.node_ids:
                    print(f"--- end of node {node_id}'s log", *cluster.log_lines(node_id)[-15:], sep="\n")
                raise


@contextmanager
def cluster_in_racks(settings: Mapping[str, str]) -> Iterator[LocalCluster]:
    """Three nodes in service, each in a rack of its own."""
    with tempfile.TemporaryDirectory(prefix="tidelog-cluster-") as directory:
        with LocalCluster(directory, 3, settings=settings) as cluster:
            for node in cluster.plan.nodes:
                with Path(node.properties_path).open("a") as file:
                    file.write(f"\nbroker.rack=rack-{node.node_id}\n")
            cluster.start()
            cluster.wait_ready(WAIT_S)
            yield cluster
            cluster.require_alive()


def admin(cluster: LocalCluster) -> AdminClient:
    """An admin client that knows all brokers."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap, **RETRY_SETTINGS})


def create_topic(cluster: LocalCluster, name: str, partitions: int = 3, factor: int = 3, **config: str) -> None:
    """Make a topic; settings with underscores for dots."""
    settings = {"min.insync.replicas": "2"} | {key.replace("_", "."): value for key, value in config.items()}
    client = admin(cluster)
    client.create_topics([NewTopic(name, partitions, factor, config=settings)])[name].result(WAIT_S)
    wait_known(cluster)


def ask(cluster: LocalCluster, request: Message, node_id: int | None = None) -> Any:
    """One request of Kafka's protocol to one broker (the first that runs), for what the client library lacks."""
    running = [one for one in cluster.node_ids if one not in cluster.down and cluster.plan_of(one).port is not None]
    port = cluster.plan_of(node_id or running[0]).port
    assert port is not None
    connection = Connection("127.0.0.1", port, client_id="test", timeout_ms=10_000)
    try:
        return connection.call(request, 10_000)
    finally:
        connection.close()


def wait_known(cluster: LocalCluster) -> None:
    """Until every broker that answers knows what one of them knows by now: which one is asked next is up to chance."""

    def offsets() -> list[int]:
        answers = [cluster.ask(node_id, "node") for node_id in cluster.node_ids]
        return [int(answer["metadata_offset"]) for answer in answers if answer is not None]

    known = max(offsets(), default=0)
    wait_until(lambda: all(offset >= known for offset in offsets()), f"all brokers know metadata up to {known}")


def wait_in_step(cluster: LocalCluster, topic: str, partitions: int) -> None:
    """Until every replica of a topic is in sync, equally long, and committed to its end."""
    why: list[str | None] = [None]

    def in_step() -> bool:
        why[0] = cluster.why_not_in_step(topic, partitions)
        return why[0] is None

    try:
        cluster.wait_until(in_step, WAIT_S, "all replicas are in step")
    except Exception as error:
        raise AssertionError(f"{error}: {why[0]}") from None


def wait_in_sync(cluster: LocalCluster, topic: str, partitions: int) -> None:
    """Until every node is in every ISR of a topic, whatever is written meanwhile."""

    def in_sync() -> bool:
        replicas = cluster.replicas(topic)
        leaders = [one for held in replicas.values() for one in held.values() if one["role"] == "leader"]
        return len(leaders) == partitions and all(len(one["isr"]) == len(cluster.node_ids) for one in leaders)

    cluster.wait_until(in_sync, WAIT_S, "every node is in sync")


class Load:
    """Idempotent producers with acks=all on one topic, and their ledger."""

    def __init__(
        self, cluster: LocalCluster, topic: str, partitions: int, *, producers: int = 2, rate: float = 150
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self._directory = Path(tempfile.mkdtemp(prefix="ledger-", dir=cluster.plan.directory))
        self.ledger = Ledger(lambda partition: self._path(partition).open("w"), partitions)
        self._producers = [
            NumberedProducer(number, cluster.bootstrap, topic, partitions, self.ledger, rate, seed=1)
            for number in range(1, producers + 1)
        ]
        for producer in self._producers:
            producer.start()

    def _path(self, partition: int) -> Path:
        return self._directory / f"{partition}.jsonl"

    def go_on(self, records: int = 100, timeout_s: float = WAIT_S) -> None:
        """Wait until this many more records are acknowledged."""
        enough = self.ledger.acknowledged + records
        deadline = time.monotonic() + timeout_s
        while self.ledger.acknowledged < enough:
            assert time.monotonic() < deadline, f"nothing is acknowledged any more after {self.ledger.acknowledged}"
            time.sleep(0.01)

    def finish(self) -> int:
        """Write no more, wait for every answer; how many were acknowledged."""
        for producer in self._producers:
            producer.ask_to_stop()
        for producer in self._producers:
            producer.finish(WAIT_S)
        self.ledger.close()
        return self.ledger.acknowledged

    def judge(self) -> list[Violation]:
        """What the ledger and the log say of each other, read once more from the start."""
        logs = read_final_log(self._cluster.bootstrap, self._topic, self._partitions, WAIT_S)
        violations: list[Violation] = []
        for partition, log in enumerate(logs):
            with self._path(partition).open() as file:
                violations += judge_ledger(partition, (Entry.from_line(line) for line in file), log)
        return violations


@contextmanager
def load_on(cluster: LocalCluster, topic: str, partitions: int = 3, **options: Any) -> Iterator[Load]:
    """A load while the block runs; in the end nothing may be lost, duplicated, reordered or given up."""
    load = Load(cluster, topic, partitions, **options)
    try:
        load.go_on()
        yield load
        load.go_on()
    finally:
        load.finish()
    assert load.judge() == []


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
