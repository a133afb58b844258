"""One seed, one history: a cluster under load and faults, then calm, and checkers that look on all the time.

    safety     for half a minute faults come and go while clients write and read; nothing may be lost or contradicted
    liveness   faults stop; within a bound everybody is back, every partition is led by its preferred replica and in
               sync, every record settled, everything read; sometimes one broker then stays away for a while, and the
               others must not wait for it; in the end all logs and all metadata are compared

Nothing but the seed decides. A trace of what happened has a hash, so that two runs can be told to be the same one.
"""

from __future__ import annotations

import gc
import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tidelog.effects import Tell
from tidelog.outbox import Chance
from tidelog.sim.checkers import ALL, Checker, History, Violation
from tidelog.sim.checkers.observer import Observer
from tidelog.sim.checkers.replay import MIN_ISR
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.consumer import Consumer, FetchAnswer
from tidelog.sim.faults import Faults
from tidelog.sim.liveness import Wishes
from tidelog.sim.machines import Process
from tidelog.sim.min_isr import MinIsrChanges
from tidelog.sim.offset_asker import OffsetAsker
from tidelog.sim.producer import Producer, ProducerSettings
from tidelog.sim.scribe import Scribe
from tidelog.sim.shape import SCRATCH, AdminShape, ProducerShape, Shape, draw, pick
from tidelog.sim.work import Work
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

LIVENESS_MS = 60_000
"""How long everything may take to be well again."""
OPERATOR_MS = 20_000
"""When an operator elects somebody where no budget was kept, so that perhaps nobody may lead by right."""
ABSENCE_MS = 3_000
WITHOUT_ONE_MS = 30_000
"""How long it may take until everything goes on without one broker: its session and its lag among others."""
SETTLE_MS = 2_000
LATE_MS = 1_000
"""Whatever was held on its way has arrived so long after its way is free."""
MOST_WAITING = 50
"""A producer with so many records unsettled hands over no more, as one whose buffer is full."""


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
    with _garbage_kept():
        return _Run(shape or draw(seed), checkers).play()


class _Run:
    """A history under way."""

    def __init__(self, shape: Shape, checkers: Sequence[type[Checker]]) -> None:
        self._shape = shape
        self._cluster = SimulatedCluster(
            shape.seed,
            settings=shape.settings,
            brokers=shape.brokers,
            controllers=shape.controllers,
            node_settings={broker: {"broker.rack": rack} for broker, rack in shape.racks.items()},
            directories=shape.directories,
        )
        self._world = self._cluster.world
        self._world.through_bytes = shape.through_bytes
        self._world.has_narrow_sockets = True
        self._world.may_send_on = True
        self._begun_ms = self._world.now_ms
        self._outcome = Outcome(shape.seed)
        self._history = History(self._cluster, shape)
        self._checkers = [checker(self._history) for checker in checkers]
        self._observer = Observer(self._world, self._checkers)
        self._faults = Faults(self._cluster, shape, self._note)
        self._history.failing_disks = self._faults.disks.failing_disks
        self._history.failing_directories = self._faults.disks.failing_directories
        self._history.rotten = self._faults.disks.rotten
        self._wishes = Wishes(self._history)
        self._scribe = Scribe(self._cluster)
        self._history.deleted_to = self._scribe.deleted_to
        if shape.work is not None:
            has_true_clocks = all(fault.kind != "clock" for fault in shape.faults)
            self._history.work = Work(self._cluster, shape.work, has_true_clocks=has_true_clocks)
        self._work = self._history.work
        self._next_numbers: dict[str, int] = {}
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
        if self._work is not None:
            outcome.operations += self._work.operations
        self._note(f"{self._world.steps} steps, {outcome.operations} operations, {outcome.faults} faults")
        outcome.trace_hash = hashlib.sha256("\n".join(outcome.trace).encode()).hexdigest()[:16]
        return outcome

    def _play(self) -> None:
        self._world.on_step = self._after_step
        self._world.on_end = self._after_end
        self._cluster.start_all()
        self._make_topics()
        self._start_clients()
        self._faults.schedule()
        self._world.run_for(self._shape.safety_ms)
        self._note("faults stop")
        self._is_sending = False
        self._faults.end()
        if self._work is not None:
            self._work.end()
        self._become_well()
        self._let_clocks_meet()
        if self._shape.absent in self._cluster.brokers and self._decides_without(self._shape.absent):
            self._let_decisions_arrive()
            self._go_on_without(self._shape.absent)
            self._become_well()
        if self._shape.directories > 1:
            self._let_decisions_arrive()
            self._go_on_without_directory(self._cluster.brokers[self._shape.seed % len(self._cluster.brokers)])
            self._become_well()
        self._world.run_for(SETTLE_MS)
        for checker in self._checkers:
            checker.at_end()

    def _after_step(self, process: Process) -> None:
        if process.host.name in self._faults.disks.failing:
            with _looked_at(process):
                self._observer.after_step(process)
        else:
            self._observer.after_step(process)
        if self._told < len(self._world.told):
            self._note_told()

    def _after_end(self, process: Process) -> None:
        with _looked_at(process):
            self._observer.after_end(process)

    # --- clients ---

    def _make_topics(self) -> None:
        self._admin = Admin(self._world, "admin", self._cluster.brokers)
        made: list[object] = []
        for topic in self._shape.topics:
            configs = {
                "min.insync.replicas": str(topic.min_insync_replicas),
                "internal.segment.bytes": str(topic.segment_bytes),
                "unclean.leader.election.enable": str(topic.may_lose).lower(),
            }
            if topic.flush_messages is not None:
                configs["flush.messages"] = str(topic.flush_messages)
            self._admin.create_topic(topic.name, topic.assignment, configs, made.append)
        wanted = len(self._shape.topics)
        if self._work is not None:
            self._work.make_topics(self._admin, made)
            wanted += len(self._work.shape.topics)
        if not self._world.run_until(lambda: len(made) == wanted):
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
            self._next_numbers[producer.name] = 0
            self._send_on(producer, wanted)
        for number, (topic, index) in enumerate(self._shape.consumers):
            rack = f"rack-{number % 3}" if self._shape.racks else ""
            consumer = Consumer(world, f"c{number}", brokers, rack)
            consumer.poll_ms = self._shape.poll_ms[number]
            self._history.consumers.append(consumer)
            self._read_on(consumer, topic, index)
        if self._shape.asks_every_ms:
            topic, index = self._shape.consumers[0]
            asker = OffsetAsker(world, "asker", brokers, topic, index)
            self._history.askers.append(asker)
            asker.ask_on(self._shape.asks_every_ms)
        if self._work is not None:
            self._work.start()
        begun_ms = world.now_ms
        MinIsrChanges(self._cluster, self._shape, self._admin, self._faults, self._note).schedule()
        for wish in self._shape.admin:
            world.at(begun_ms + wish.at_ms, lambda wish=wish: self._administer(wish))  # type: ignore[misc]

    def _send_on(self, producer: Producer, wanted: ProducerShape) -> None:
        if not self._is_sending:
            return
        if producer.waiting_count < MOST_WAITING and self._has_more():
            number = self._next_numbers[producer.name]
            self._next_numbers[producer.name] = number + 1
            producer.send(wanted.topic, wanted.partition, f"{wanted.name}.{number}")
        producer.after(wanted.interval_ms, lambda: self._send_on(producer, wanted))

    def _has_more(self) -> bool:
        """Whether there is a record left to hand over."""
        most = self._shape.most_records
        return most is None or sum(self._next_numbers.values()) < most

    def _read_on(self, consumer: Consumer, topic: str, index: int) -> None:
        def read(_: FetchAnswer) -> None:
            self._outcome.operations += 1
            consumer.after(50, lambda: self._read_on(consumer, topic, index))

        consumer.read_on(topic, index, read)

    def _administer(self, wish: AdminShape) -> None:
        """Something an operator does meanwhile; how it ends is in the trace."""
        if self._faults.is_over:
            return
        self._outcome.operations += 1
        chance = Chance(wish.draw)
        topic = pick(chance, self._shape.topics)
        self._note(f"admin: {wish}")
        if wish.action == "create":
            self._make_scratch(topic.assignment)
        elif wish.action == "recreate":
            self._delete_scratch(lambda _: self._make_scratch(topic.assignment))
        elif wish.action == "delete":
            self._delete_scratch(lambda _: None)
        elif wish.action == "delete records":
            self._scribe.delete_records(self._shape.consumers, chance.bits64(), self._note)
        elif wish.action == "alter":
            self._admin.alter_topic(topic.name, {"retention.ms": "3600000"}, lambda _: None)
        elif wish.action == "reassign":
            index = chance.below(len(topic.assignment))
            rest = list(self._cluster.brokers)
            factor = min(len(rest), max(topic.min_insync_replicas, 1 + chance.below(4)))
            replicas = [rest.pop(chance.below(len(rest))) for _ in range(factor)]
            self._note(f"admin: {topic.name}-{index} to {replicas}")
            self._admin.reassign(topic.name, index, replicas, lambda _: None)
        else:
            self._admin.elect(0, topic.name, range(len(topic.assignment)), lambda _: None)

    def _make_scratch(self, assignment: Sequence[Sequence[int]]) -> None:
        self._admin.create_topic(SCRATCH, assignment, {}, lambda _: self._scribe.write(SCRATCH, len(assignment)))

    def _delete_scratch(self, then: Callable[[object], None]) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=SCRATCH)], timeout_ms=5000)
        self._admin.decide(ApiKey.DELETE_TOPICS, 6, request, lambda one: int(one.responses[0].error_code), then)

    # --- liveness ---

    def _become_well(self) -> None:
        """Everybody is started again, and within the bound nothing is left to wish for."""
        begun_ms = self._world.now_ms
        has_operator = True
        while missing := self._wishes.of_all():
            self._faults.start_the_dead()
            waited_ms = self._world.now_ms - begun_ms
            if waited_ms >= LIVENESS_MS:
                raise Violation("Liveness", f"{LIVENESS_MS} ms after the last fault: {missing}")
            if has_operator and waited_ms >= OPERATOR_MS:
                has_operator = False
                self._elect_somebody()
            self._world.run_for(100)
        self._note(f"all is well {self._world.now_ms - begun_ms} ms after the last fault")

    def _let_clocks_meet(self) -> None:
        """A node whose clock was set back is slow until it is right again, and may seem dead at any moment: the others
        cannot do without one more then, and something is always under way.
        """
        hosts = [self._world.hosts[node_id] for node_id in self._cluster.node_ids]
        while any(host.clock.is_slowed(self._world.now_ms) for host in hosts):
            self._world.run_for(100)
        if self._wishes.of_all():
            self._become_well()

    def _let_decisions_arrive(self) -> None:
        """What an admin asked for in the faults may move a partition at any moment: nobody can do without its only
        replica then.
        """
        begun_ms = self._world.now_ms
        self._world.run_for(LATE_MS)
        while self._admin.waiting:
            if self._world.now_ms - begun_ms >= LIVENESS_MS:
                raise Violation("Liveness", f"{LIVENESS_MS} ms after the last fault: the admin waits for a decision")
            self._world.run_for(100)
        if self._wishes.of_all():
            self._become_well()

    def _elect_somebody(self) -> None:
        """More was lost than replication can bear: an operator decides for what is left."""
        for topic, index, partition in self._cluster.newest_image().partitions():
            if partition.leader < 0 and (self._shape.is_beyond_budget or topic.name == SCRATCH):
                self._note(f"admin: elect somebody to lead {topic.name}-{index}, clean or not")
                self._history.asked_unclean.add(topic.name)
                self._admin.elect(1, topic.name, [index], lambda _: None)

    def _go_on_without_directory(self, node_id: int) -> None:
        """One log directory of a broker fails and nobody sees to it: others lead what it led there (KIP-112)."""
        disk = self._world.hosts[node_id].disks[-1]
        self._note(f"disk {disk.root} of node {node_id} fails for good")
        directory = next(one for one in self._cluster.process(node_id).node.replicas.directories if one.storage is disk)
        self._faults.disks.fail_for_good(node_id, disk)
        self._write_on()
        begun_ms = self._world.now_ms
        while missing := self._wishes.without(node_id, directory.directory_id):
            if self._world.now_ms - begun_ms >= WITHOUT_ONE_MS:
                raise Violation("Liveness", f"{WITHOUT_ONE_MS} ms without {disk.root} of node {node_id}: {missing}")
            self._world.run_for(100)
        self._note(f"everything goes on without {disk.root} of node {node_id}")
        self._faults.disks.heal(node_id)

    def _write_on(self) -> None:
        """Producers hand over records for a while."""
        self._is_sending = True
        for producer, wanted in zip(self._history.producers, self._shape.producers, strict=True):
            self._send_on(producer, wanted)
        self._world.run_for(ABSENCE_MS)
        self._is_sending = False

    def _decides_without(self, absent: int) -> bool:
        voters = self._cluster.process(absent).node.cluster.quorum.voters.ids
        return len([one for one in voters if one != absent]) * 2 > len(voters)

    def _go_on_without(self, absent: int) -> None:
        """One broker dies and stays away: where enough are left, everything goes on without it."""
        self._note(f"kill {absent}, for good as far as the others know")
        self._faults.kept_away = absent
        self._world.kill(absent)
        self._write_on()
        begun_ms = self._world.now_ms
        while missing := self._wishes.without(absent):
            if self._world.now_ms - begun_ms >= WITHOUT_ONE_MS:
                raise Violation("Liveness", f"{WITHOUT_ONE_MS} ms without node {absent}: {missing}")
            self._world.run_for(100)
        self._note(f"everything goes on without {absent}")
        self._faults.kept_away = -1

    # --- the trace ---

    def _note(self, text: str) -> None:
        self._outcome.trace.append(f"{self._world.now_ms - self._begun_ms:>6}  {text}")

    def _note_told(self) -> None:
        told = self._world.told
        while self._told < len(told):
            at_ms, node_id, one = told[self._told]
            self._told += 1
            self._count(one)
            fields = ", ".join(f"{name} {value}" for name, value in one.fields.items())
            self._outcome.trace.append(f"{at_ms - self._begun_ms:>6}  node {node_id}: {one.kind}: {fields}")

    def _count(self, told: Tell) -> None:
        """Keep count of what makes a history worth playing."""
        seen = self._outcome.seen
        seen[told.kind] += 1
        reason = str(told.fields.get("reason", ""))
        if told.kind == "log-truncated":
            seen["truncation"] += 1
            seen["divergence"] += reason.startswith("epoch ")
        elif told.kind == "leader-elected":
            seen["ELR election"] += "eligible leader replica" in reason
            seen["last-known-leader election"] += "the last known leader" in reason
            seen["unclean election"] += "unclean election" in reason
        elif told.kind == "quorum-snapshot-loaded":
            seen["snapshot install"] += 1
        elif told.kind == "config-changed":
            seen["min ISR change"] += bool(self._shape.min_isr_changes) and list(told.fields["changes"]) == [MIN_ISR]
        elif told.kind == "log-directory-offline":
            seen["lost directory"] += self._shape.directories > 1
        elif told.kind == "controller-active":
            seen["controller change"] += seen[told.kind] > 1


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Look for cycles of garbage when all is over: a history makes millions of objects, and is one large cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _looked_at(process: Process) -> Iterator[None]:
    """Let checkers read disks that fail for their node."""
    for disk in process.host.disks:
        disk.is_looked_at = True
    try:
        yield
    finally:
        for disk in process.host.disks:
            disk.is_looked_at = False
