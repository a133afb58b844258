"""One seed, one history: a cluster under load and faults, then calm, and checkers that look on all the time.

    safety     for half a minute faults come and go while clients write and read; nothing may be lost or contradicted
    liveness   faults stop; within a bound everybody is back, every partition is led and in sync, every record settled,
               everything read; then all logs and all metadata are compared

Nothing but the seed decides. A trace of what happened has a hash, so that two runs can be told to be the same one.
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidelog.sim.checkers import ALL, Checker, History, Violation
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.consumer import Consumer, FetchAnswer
from tidelog.sim.faults import Faults
from tidelog.sim.machines import Process
from tidelog.sim.producer import Producer, ProducerSettings
from tidelog.sim.shape import SAFETY_MS, ProducerShape, Shape, draw
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

LIVENESS_MS = 60_000
"""How long everything may take to be well again."""
SETTLE_MS = 2_000
SCRATCH = "scratch"
"""The topic that admins make and delete."""


@dataclass(slots=True)
class Outcome:
    """What came of a seed."""

    seed: int
    finding: str = ""
    """Empty when all was well; else what was violated, by which checker."""
    checker: str = ""
    trace: list[str] = field(default_factory=list)
    trace_hash: str = ""
    simulated_ms: int = 0
    operations: int = 0
    faults: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    """Events worth counting over many seeds."""

    @property
    def replay_command(self) -> str:
        """What shows this history again."""
        return f"tidelog sim replay {self.seed} --trace"


def run(seed: int, checkers: Sequence[type[Checker]] = ALL, shape: Shape | None = None) -> Outcome:
    """Play a seed to its end, or to the first violation."""
    return _Run(shape or draw(seed), checkers).play()


class _Run:
    """A history under way."""

    def __init__(self, shape: Shape, checkers: Sequence[type[Checker]]) -> None:
        self._shape = shape
        self._cluster = SimulatedCluster(
            shape.seed, settings=shape.settings, brokers=shape.brokers, controllers=shape.controllers
        )
        self._world = self._cluster.world
        self._begun_ms = self._world.now_ms
        self._outcome = Outcome(shape.seed)
        self._history = History(self._cluster, shape)
        self._checkers = [checker(self._history) for checker in checkers]
        self._faults = Faults(self._cluster, shape, self._note)
        self._told = 0
        self._is_sending = True

    def play(self) -> Outcome:
        """The whole history."""
        outcome = self._outcome
        self._note(self._shape.describe())
        try:
            self._play()
        except Violation as violation:
            outcome.checker, outcome.finding = violation.checker, str(violation)
        except Exception as error:  # a fault of the node under test, or of ours: either is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            outcome.checker = "NodesGoOn"
            outcome.finding = (
                f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno} in {where.name})"
            )
            outcome.trace += traceback.format_exc().splitlines()
        self._note_told()
        if outcome.finding:
            self._note(f"FOUND {outcome.finding}")
        outcome.simulated_ms = self._world.now_ms - self._begun_ms
        outcome.faults = self._faults.injected
        for producer in self._history.producers:
            outcome.operations += len(producer.ledger) + producer.retries
        self._note(f"{self._world.steps} steps, {outcome.operations} operations, {outcome.faults} faults")
        outcome.trace_hash = hashlib.sha256("\n".join(outcome.trace).encode()).hexdigest()[:16]
        return outcome

    def _play(self) -> None:
        self._world.on_step = self._after_step
        self._cluster.start_all()
        self._make_topics()
        self._start_clients()
        self._faults.schedule()
        self._world.run_for(SAFETY_MS)
        self._note("faults stop")
        self._is_sending = False
        self._faults.end()
        self._become_well()
        self._world.run_for(SETTLE_MS)
        for checker in self._checkers:
            checker.at_end()

    def _after_step(self, process: Process) -> None:
        for checker in self._checkers:
            checker.after_step(process)
        self._note_told()

    # --- clients ---

    def _make_topics(self) -> None:
        self._admin = Admin(self._world, "admin", self._cluster.brokers)
        made: list[object] = []
        for topic in self._shape.topics:
            configs = {
                "min.insync.replicas": str(topic.min_insync_replicas),
                "internal.segment.bytes": str(topic.segment_bytes),
            }
            if topic.flush_messages is not None:
                configs["flush.messages"] = str(topic.flush_messages)
            self._admin.create_topic(topic.name, topic.assignment, configs, made.append)
        if not self._world.run_until(lambda: len(made) == len(self._shape.topics)):
            raise Violation("Liveness", "the topics are not made")

    def _start_clients(self) -> None:
        world, brokers = self._world, self._cluster.brokers
        for wanted in self._shape.producers:
            settings = ProducerSettings.from_words(
                {
                    "acks": wanted.acks,
                    "enable.idempotence": str(wanted.is_idempotent).lower(),
                    "delivery.timeout.ms": "120000",
                }
            )
            producer = Producer(world, wanted.name, brokers, settings)
            self._history.producers.append(producer)
            self._send_on(producer, wanted, 0)
        for number, (topic, index) in enumerate(self._shape.consumers):
            consumer = Consumer(world, f"c{number}", brokers)
            self._history.consumers.append(consumer)
            self._read_on(consumer, topic, index)
        begun_ms = world.now_ms
        for at_ms, action in self._shape.admin:
            world.at(begun_ms + at_ms, lambda action=action: self._administer(action))  # type: ignore[misc]

    def _send_on(self, producer: Producer, wanted: ProducerShape, number: int) -> None:
        if not self._is_sending:
            return
        if len(producer.unsettled) < 50:
            producer.send(wanted.topic, wanted.partition, f"{wanted.name}.{number}")
            number += 1
        producer.after(wanted.interval_ms, lambda: self._send_on(producer, wanted, number))

    def _read_on(self, consumer: Consumer, topic: str, index: int) -> None:
        def read(_: FetchAnswer) -> None:
            self._outcome.operations += 1
            consumer.after(50, lambda: self._read_on(consumer, topic, index))

        consumer.read_on(topic, index, read)

    def _administer(self, action: str) -> None:
        """Something an operator does meanwhile; how it ends is in the trace."""
        if self._faults.is_over:
            return
        self._outcome.operations += 1
        topic = self._shape.topics[0]
        self._note(f"admin: {action}")
        if action == "create":
            self._admin.create_topic(SCRATCH, topic.assignment, {}, lambda _: None)
        elif action == "delete":
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=SCRATCH)], timeout_ms=5000)
            self._admin.decide(
                ApiKey.DELETE_TOPICS, 6, request, lambda one: int(one.responses[0].error_code), lambda _: None
            )
        elif action == "alter":
            self._admin.alter_topic(topic.name, {"retention.ms": "3600000"}, lambda _: None)
        else:
            self._admin.elect(0, topic.name, range(len(topic.assignment)), lambda _: None)

    # --- liveness ---

    def _become_well(self) -> None:
        """Everybody is started again, and within the bound nothing is left to wish for."""
        deadline_ms = self._world.now_ms + LIVENESS_MS
        while True:
            self._faults.start_the_dead()
            missing = self._missing()
            if not missing:
                break
            if self._world.now_ms >= deadline_ms:
                raise Violation("Liveness", f"{LIVENESS_MS} ms after the last fault: {missing}")
            self._world.run_for(100)
        self._note(f"all is well {self._world.now_ms - deadline_ms + LIVENESS_MS} ms after the last fault")

    def _missing(self) -> str:
        wishes: Sequence[Callable[[], str]] = (
            self._who_is_away,
            self._what_is_not_in_sync,
            self._what_is_unsettled,
            self._what_is_unread,
        )
        return next(filter(None, (wish() for wish in wishes)), "")

    def _who_is_away(self) -> str:
        away = [one for one in self._cluster.node_ids if not self._cluster.is_running(one)]
        return f"nodes {away} do not serve" if away else ""

    def _what_is_not_in_sync(self) -> str:
        image = self._cluster.newest_image()
        for topic, index, one in image.partitions():
            if one.leader < 0 or len(one.isr) < len(one.replicas):
                return f"{topic.name}-{index} has leader {one.leader}, replicas {one.replicas}, in sync {one.isr}"
        return ""

    def _what_is_unsettled(self) -> str:
        for producer in self._history.producers:
            if producer.unsettled:
                one = producer.unsettled[0]
                return f"{producer.name} waits for {len(producer.unsettled)} records, first {one.value} ({one.error})"
        return ""

    def _what_is_unread(self) -> str:
        image = self._cluster.newest_image()
        for (topic, index), consumer in zip(self._shape.consumers, self._history.consumers, strict=True):
            known = image.topic(topic)
            assert known is not None
            leader = self._cluster.process(known.partitions[index].leader)
            hosted = leader.node.replicas.partitions.get((topic, index))
            if hosted is None or consumer.position < hosted.log.log_end_offset:
                end_offset = None if hosted is None else hosted.log.log_end_offset
                return f"{consumer.name} of {topic}-{index} has read to {consumer.position} of {end_offset}"
        return ""

    # --- the trace ---

    def _note(self, text: str) -> None:
        self._outcome.trace.append(f"{self._world.now_ms - self._begun_ms:>6}  {text}")

    def _note_told(self) -> None:
        told = self._world.told
        while self._told < len(told):
            at_ms, node_id, one = told[self._told]
            self._told += 1
            self._outcome.seen[one.kind] += 1
            fields = ", ".join(f"{name} {value}" for name, value in one.fields.items())
            self._outcome.trace.append(f"{at_ms - self._begun_ms:>6}  node {node_id}: {one.kind}: {fields}")
