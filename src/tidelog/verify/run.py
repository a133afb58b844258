"""A whole run: start a cluster, let clients work, break and mend it, heal it, and judge.

Everything that waits has a bound; a bound that is met is a violation like any other.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TextIO

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tidelog.errors import CorruptionError, ErrorCode, KafkaError, TidelogError
from tidelog.ledger import Entry
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.faults import LINK_KINDS, Fault, Faults
from tidelog.verify.files import stored_replicas
from tidelog.verify.gaps import Gap
from tidelog.verify.judge import Violation, judge_ledger, judge_replicas, judge_seen
from tidelog.verify.workload import (
    RETRY_SETTINGS,
    FollowingConsumer,
    Ledger,
    NumberedProducer,
    now_ms,
    read_final_log,
)

TOPIC = "verify"
_HEAL_TIMEOUT_S = 60.0
_FINISH_TIMEOUT_S = 90.0
_ADMIN_TIMEOUT_S = 30.0
_SIGN_OF_LIFE_S = 1.0


class Plan(NamedTuple):
    """What is to be run."""

    directory: str
    producers: int = 4
    consumers: int = 4
    seconds: float = 60
    chaos: tuple[str, ...] = ()
    interval_s: float = 10
    nodes: int = 3
    partitions: int = 6
    rate: float = 100
    """Records a second of each producer."""
    seed: int = 1
    session_timeout_s: float = 3
    """broker.session.timeout.ms of the nodes, shorter than Kafka's 9 s so that a pause is longer."""
    settings: tuple[tuple[str, str], ...] = ()
    port: int | None = None
    bootstrap: str | None = None
    """A cluster that runs already; it is not broken, and its files are not read."""


class Progress(NamedTuple):
    """How a run stands, about once a second."""

    elapsed_s: float
    acknowledged: int
    seen: int
    silent_ms: int
    """Of the partition that has waited longest for an acknowledgement."""
    faults: int
    last_fault: str


class FaultOutcome(NamedTuple):
    """One fault and the longest gap between acknowledgements it caused."""

    fault: Fault
    gap: Gap | None


class Report(NamedTuple):
    """What came of it."""

    plan: Plan
    acknowledged: int
    seconds: float
    topic: str
    faults: list[FaultOutcome]
    violations: list[Violation]

    @property
    def passed(self) -> bool:
        """Whether everything held."""
        return not self.violations

    @property
    def counts(self) -> Counter[str]:
        """Violations by kind."""
        return Counter(violation.kind for violation in self.violations)


Tell = Callable[[Progress], None]


def run(plan: Plan, tell: Tell = lambda _: None) -> Report:
    """Run a plan from start to report. TidelogError when it could not even begin."""
    os.makedirs(plan.directory, exist_ok=True)
    if plan.bootstrap is not None:
        return _Run(plan, None, plan.bootstrap).run(tell)
    settings = {
        "broker.session.timeout.ms": str(int(plan.session_timeout_s * 1000)),
        "broker.heartbeat.interval.ms": str(max(50, int(plan.session_timeout_s * 1000) // 5)),
        **dict(plan.settings),
    }
    directory, with_links = os.path.join(plan.directory, "cluster"), bool(LINK_KINDS.intersection(plan.chaos))
    with LocalCluster(directory, plan.nodes, settings=settings, port=plan.port, with_links=with_links) as cluster:
        cluster.start()
        cluster.wait_ready()
        return _Run(plan, cluster, cluster.bootstrap).run(tell)


class _Run:
    def __init__(self, plan: Plan, cluster: LocalCluster | None, bootstrap: str) -> None:
        self._plan = plan
        self._cluster = cluster
        self._bootstrap = bootstrap
        self._topic = TOPIC if cluster is not None else f"{TOPIC}-{os.getpid()}-{now_ms()}"
        self._violations: list[Violation] = []
        self._faults: Faults | None = None

    def run(self, tell: Tell) -> Report:
        plan = self._plan
        self._create_topic()
        ledger = Ledger(self._open_ledger, plan.partitions)
        producers = [
            NumberedProducer(number, self._bootstrap, self._topic, plan.partitions, ledger, plan.rate, plan.seed)
            for number in range(1, plan.producers + 1)
        ]
        consumers = [
            FollowingConsumer(f"consumer {number}", self._bootstrap, self._topic, plan.partitions)
            for number in range(1, plan.consumers + 1)
        ]
        started_ms = now_ms()
        for producer in producers:
            producer.start()
        for consumer in consumers:
            consumer.start()
        with self._faults_in_background():
            self._let_work(ledger, consumers, started_ms, tell)
        ended_ms = now_ms()
        self._heal()
        for producer in producers:
            producer.ask_to_stop()
        deadline = time.monotonic() + _FINISH_TIMEOUT_S
        for producer in producers:
            producer.finish(max(0.1, deadline - time.monotonic()))
        outcomes = self._fault_outcomes(ledger, now_ms())
        ledger.close()
        self._judge(consumers)
        seconds = (ended_ms - started_ms) / 1000
        return Report(plan, ledger.acknowledged, seconds, self._topic, outcomes, self._violations)

    # --- working ---

    def _create_topic(self) -> None:
        brokers = self._plan.nodes
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **RETRY_SETTINGS})
        try:
            if self._cluster is None:
                brokers = len(admin.list_topics(timeout=_ADMIN_TIMEOUT_S).brokers)
        except KafkaException as error:
            reason = f"no broker answers at {self._bootstrap}: {error.args[0].str()}"
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, reason) from None
        wanted = NewTopic(
            self._topic,
            self._plan.partitions,
            min(3, brokers),
            # Small segments, so that rolling and recovery are part of every run.
            config={"min.insync.replicas": str(min(2, brokers)), "segment.bytes": "1048576", "retention.ms": "-1"},
        )
        try:
            admin.create_topics([wanted])[self._topic].result(_ADMIN_TIMEOUT_S)
        except KafkaException as error:
            raise TidelogError(f"topic {self._topic} could not be made: {error.args[0].str()}") from None

    def _open_ledger(self, partition: int) -> TextIO:
        path = self._ledger_path(partition)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "w", encoding="utf-8")

    def _ledger_path(self, partition: int) -> str:
        return os.path.join(self._plan.directory, "ledger", f"{self._topic}-{partition}.jsonl")

    @contextlib.contextmanager
    def _faults_in_background(self) -> Iterator[None]:
        plan, cluster = self._plan, self._cluster
        if cluster is None or not plan.chaos:
            yield
            return
        faults = self._faults = Faults(
            cluster,
            plan.chaos,
            topic=self._topic,
            partitions=plan.partitions,
            interval_s=plan.interval_s,
            session_timeout_s=plan.session_timeout_s,
            seed=plan.seed,
        )
        stopping = threading.Event()

        def work() -> None:
            try:
                faults.run(stopping)
            except TidelogError as error:
                self._violations.append(Violation("died", -1, str(error)))

        thread = threading.Thread(target=work, name="faults", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(plan.session_timeout_s + plan.interval_s + 60)

    def _let_work(self, ledger: Ledger, consumers: Sequence[FollowingConsumer], started_ms: int, tell: Tell) -> None:
        end_ms = started_ms + int(self._plan.seconds * 1000)
        while now_ms() < end_ms and not self._violations:
            done = self._faults.done if self._faults is not None else []
            silent_since_ms = ledger.gaps.silent_since()
            tell(
                Progress(
                    elapsed_s=(now_ms() - started_ms) / 1000,
                    acknowledged=ledger.acknowledged,
                    seen=min((consumer.count for consumer in consumers), default=0),
                    silent_ms=0 if silent_since_ms is None else now_ms() - silent_since_ms,
                    faults=len(done),
                    last_fault=done[-1].text if done else "",
                )
            )
            time.sleep(max(0.0, min(_SIGN_OF_LIFE_S, (end_ms - now_ms()) / 1000)))

    def _heal(self) -> None:
        """Let every node run and wait until all of them are in service."""
        if self._cluster is None:
            return
        try:
            self._cluster.heal()
            self._cluster.wait_ready(_HEAL_TIMEOUT_S)
        except TidelogError as error:
            self._violations.append(Violation("died", -1, str(error)))

    def _fault_outcomes(self, ledger: Ledger, end_ms: int) -> list[FaultOutcome]:
        done = self._faults.done if self._faults is not None else []
        gaps = ledger.gaps.longest_within([fault.at_ms for fault in done], end_ms)
        return [FaultOutcome(fault, gap) for fault, gap in zip(done, gaps, strict=True)]

    # --- judging ---

    def _judge(self, consumers: Sequence[FollowingConsumer]) -> None:
        plan = self._plan
        if self._cluster is not None:
            self._wait_in_step(self._cluster)
        logs: list[array[int]] = []
        try:
            logs = read_final_log(self._bootstrap, self._topic, plan.partitions, _FINISH_TIMEOUT_S)
        except (TidelogError, KafkaException) as error:
            self._violations.append(Violation("behind", -1, str(error)))
        self._stop_consumers(consumers, [len(log) for log in logs])
        for partition, log in enumerate(logs):
            with open(self._ledger_path(partition), encoding="utf-8") as file:
                self._violations += judge_ledger(partition, (Entry.from_line(line) for line in file), log)
            for consumer in consumers:
                self._violations += judge_seen(partition, consumer.seen_of(partition), log)
        if self._cluster is not None:
            self._judge_nodes(self._cluster, logs)

    def _wait_in_step(self, cluster: LocalCluster) -> None:
        why: list[str | None] = [None]

        def in_step() -> bool:
            why[0] = cluster.why_not_in_step(self._topic, self._plan.partitions)
            return why[0] is None

        try:
            cluster.wait_until(in_step, _HEAL_TIMEOUT_S, "all replicas are in step")
        except TidelogError as error:
            self._violations.append(Violation("behind", -1, f"{error} ({why[0]})"))

    def _stop_consumers(self, consumers: Sequence[FollowingConsumer], ends: Sequence[int]) -> None:
        deadline = time.monotonic() + _FINISH_TIMEOUT_S
        while ends and time.monotonic() < deadline and not all(each.has_read_to(ends) for each in consumers):
            time.sleep(0.02)
        for consumer in consumers:
            consumer.stop(10)

    def _judge_nodes(self, cluster: LocalCluster, logs: Sequence[array[int]]) -> None:
        """Stop the nodes and compare what they wrote, byte by byte."""
        for node_id in cluster.stop_all():
            self._violations.append(Violation("died", -1, f"node {node_id} did not stop in time"))
        for node_id in cluster.node_ids:
            faults = [
                line for line in cluster.log_lines(node_id) if re.match(r"Traceback|\w*(Error|Exception)\b", line)
            ]
            if faults:
                text = f"node {node_id} printed {len(faults)} lines of a fault of its own, the last: {faults[-1]}"
                self._violations.append(Violation("died", -1, text))
        directories = {node_id: cluster.plan_of(node_id).data_directory for node_id in cluster.node_ids}
        for partition, log in enumerate(logs):
            try:
                stored = stored_replicas(directories, self._topic, partition)
            except (CorruptionError, OSError) as error:
                self._violations.append(Violation("differing", partition, str(error)))
                continue
            if len(stored) != min(3, len(directories)):
                self._violations.append(Violation("differing", partition, f"only nodes {list(stored)} hold it"))
            self._violations += judge_replicas(partition, stored, len(log))
