"""What one seed asks for: a cluster, its settings, what its clients do, and which faults meet it. Data, drawn once.

Nothing here runs. The same number gives the same shape on every machine, so a shape need not be stored to be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tidelog.outbox import Chance
from tidelog.sim.work_shape import WorkShape, WorkTopic, draw_work

SAFETY_MS = 30_000
"""How long faults go on."""
FIRST_CONTROLLER = 11
"""Controllers of split clusters are numbered from here."""
FAULT_KINDS = (
    "kill",
    "power loss",
    "pause",
    "cut",
    "one-way cut",
    "isolate",
    "hold",
    "slow",
    "restart",
    "rolling restart",
    "clock",
    "strand",
    "wipe",
    "full disk",
    "slow disk",
    "disk error",
    "rot",
    "blackout",
    "amnesia",
    "stale proposal",
    "usurper",
    "new voter",
)
"""The last five are plots, see `plots`."""
OFTEN = ("kill", "power loss", "power loss", "strand")
"""Kinds that get another chance to be among a seed's: most of what can go wrong needs one of these."""
NETWORK_FAULTS = ("cut", "one-way cut", "hold", "slow")
ADMIN_ACTIONS = (
    *("create", "recreate", "recreate", "delete", "alter", "elect", "elect", "elect", "reassign", "reassign"),
    *("delete records", "delete records"),
)
SCRATCH = "scratch"
"""The topic that admins make, write a little to, and delete. No budget is kept for it: it may lose records."""
DISK_FAULTS = ("disk error", "disk error", "disk error", "full disk", "wipe", "power loss", "kill")
"""What happens more often where there are several disks: one fails, and then something happens to its machine."""
ROT_OF_WORK = "rot of work"
"""Rot in a topic of groups, transactions or their coordinators; that in the topics of plain producers is "rot"."""
ROT_SHARE = 3
"""In one seed of so many of those with groups and transactions there is some of it."""
DIRECTORIES_SHARE = 6
"""In one seed of so many each broker has several log directories, each on a disk of its own."""
MIN_ISR_SHARE = 4
"""In one seed of so many min.insync.replicas of topics changes while the history plays."""
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic and where its replicas are."""

    name: str
    assignment: tuple[tuple[int, ...], ...]
    min_insync_replicas: int
    flush_messages: int | None
    """flush.messages; None for Kafka's default, which leaves it to the replicas."""
    segment_bytes: int
    may_lose: bool = False
    """unclean.leader.election.enable: records may be lost, and only this topic's loss goes unchecked."""


@dataclass(frozen=True, slots=True)
class AdminShape:
    """Something an operator does at a time; `draw` decides on the rest of it."""

    at_ms: int
    action: str
    draw: int

    def __str__(self) -> str:
        return self.action


@dataclass(frozen=True, slots=True)
class MinIsrShape:
    """min.insync.replicas of a topic is set to another value."""

    at_ms: int
    topic: str
    value: int
    patience_ms: int
    """How long the admin waits for a moment at which somebody is not in sync, before it is done anyway."""
    is_late: bool = False
    """Whether the leader hears late of it: followers are made to lag, and it changes while they are to be dropped."""

    def __str__(self) -> str:
        return f"min.insync.replicas of {self.topic} to {self.value}"


@dataclass(frozen=True, slots=True)
class ProducerShape:
    """A producer: what it waits for, and how often it sends where."""

    name: str
    acks: str
    is_idempotent: bool
    topic: str
    partition: int
    interval_ms: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Something goes wrong at a time, for a time."""

    at_ms: int
    kind: str
    places: tuple[int | str, ...]
    duration_ms: int
    traffic: tuple[str, ...]
    """Kinds of traffic that a fault of the network hits."""
    amount: int
    """How much slower, or how far a clock is set."""
    aim: int = -1
    """The number of the partition whose leader is hit instead of the first place; -1 for that place itself."""

    def __str__(self) -> str:
        where = "-".join(map(str, self.places))
        where += "" if self.aim < 0 else f" (the leader of partition number {self.aim})"
        return f"{self.kind} {where} for {self.duration_ms} ms ({'+'.join(self.traffic)}, {self.amount})"


@dataclass(frozen=True, slots=True)
class Shape:
    """One seed's whole plan."""

    seed: int
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    settings: dict[str, str]
    topics: tuple[TopicShape, ...]
    producers: tuple[ProducerShape, ...]
    consumers: tuple[tuple[str, int], ...]
    admin: tuple[AdminShape, ...]
    """When the admin does what."""
    faults: tuple[Fault, ...] = field(default=())
    racks: dict[int, str] = field(default_factory=dict)
    """Where brokers stand; empty when they stand nowhere. Then consumers read from replicas in their own rack."""
    is_beyond_budget: bool = False
    """Faults may lose more bytes than replication can bear; loss goes unchecked, and the trace says so."""
    through_bytes: bool = False
    """Whether every message is encoded and decoded on its way, as on a wire."""
    poll_ms: tuple[int, ...] = ()
    """How long each consumer waits before it reads on."""
    absent: int = -1
    """The broker that stays away for a while when all is well, to see that the others do not wait for it."""
    asks_every_ms: int = 0
    """How often somebody asks for the latest offset of the first partition; 0 when nobody does."""
    work: WorkShape | None = None
    """What groups and transactions do; None where there are none."""
    safety_ms: int = SAFETY_MS
    """How long faults and load go on; a history that is shrunk has less."""
    most_records: int | None = None
    """How many records producers hand over in all; None for no bound."""
    directories: int = 1
    """Log directories of each broker, each on a disk of its own; the first holds the metadata as well."""
    min_isr_changes: tuple[MinIsrShape, ...] = ()
    """When min.insync.replicas of which topic becomes what."""

    @property
    def every_topic(self) -> tuple[TopicShape | WorkTopic, ...]:
        """The topics of plain producers, and those of groups and transactions."""
        topics: tuple[TopicShape | WorkTopic, ...] = self.topics
        return topics if self.work is None else topics + self.work.topics

    def least_min_isr(self, topic: TopicShape | WorkTopic) -> int:
        """The least min.insync.replicas that a topic ever has: so many replicas have what is acknowledged, no more."""
        later = [one.value for one in self.min_isr_changes if one.topic == topic.name]
        return min([topic.min_insync_replicas, *later])

    def may_lose(self, topic: str) -> bool:
        """Whether records of a topic may be lost without that being a bug."""
        may_lose = any(one.may_lose for one in self.every_topic if one.name == topic)
        return self.is_beyond_budget or topic == SCRATCH or may_lose

    @property
    def targets(self) -> tuple[tuple[str, int], ...]:
        """The partitions whose leaders faults aim at."""
        return self.consumers + (() if self.work is None else self.work.partitions)

    def describe(self) -> str:
        """The plan in a line."""
        topics = ", ".join(
            f"{one.name} {list(map(list, one.assignment))} min {one.min_insync_replicas}"
            f"{' unclean' if one.may_lose else ''}"
            for one in self.topics
        )
        producers = ", ".join(
            f"{one.name} acks={one.acks}{' idempotent' if one.is_idempotent else ''}" for one in self.producers
        )
        more = [f"racks {self.racks}"] if self.racks else []
        more += ["BEYOND THE BUDGET: loss is not checked"] if self.is_beyond_budget else []
        more += ["through bytes"] if self.through_bytes else []
        more += [f"{self.directories} log directories each"] if self.directories > 1 else []
        more += ["min.insync.replicas changes"] if self.min_isr_changes else []
        if self.work is not None:
            more += [f"groups and transactions: {', '.join(self.work.places)}"]
        nodes = f"brokers {self.brokers} controllers {self.controllers}"
        return "; ".join((nodes, topics, producers, str(self.settings), *more))


def draw(seed: int, *, has_several_directories: bool = False, has_min_isr_changes: bool = False) -> Shape:
    """The shape of a seed; for a hunt, one with several log directories or with min.insync.replicas that change."""
    chance = Chance(seed * 2 + 1)
    for _ in range(3):
        chance.bits64()  # neighbouring seeds begin alike
    brokers = tuple(range(1, pick(chance, (1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7)) + 1))
    controllers = brokers
    if chance.below(3) == 0:
        controllers = tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + pick(chance, (1, 3))))
    elif len(brokers) > 3 and chance.below(2):
        controllers = brokers[:3]
    topics = tuple(_draw_topic(chance, f"t{number}", brokers) for number in range(1 + chance.below(2)))
    settings = {
        "replication.events.enable": "false",
        "broker.session.timeout.ms": pick(chance, ("2000", "3000", "9000")),
        "broker.heartbeat.interval.ms": pick(chance, ("300", "1000")),
        "replica.lag.time.max.ms": pick(chance, ("700", "1500", "4000")),
        "metadata.log.max.record.bytes.between.snapshots": pick(chance, ("1000", "3000", "20000", "20971520")),
        "leader.imbalance.check.interval.seconds": pick(chance, ("3", "10")),
        "controller.quorum.auto.join.enable": "true",
    }
    racks = {broker: f"rack-{broker % 3}" for broker in brokers} if chance.below(3) == 0 else {}
    if racks:
        settings["replica.selector.class"] = RACK_AWARE
    producers = tuple(_draw_producer(chance, f"p{number}", topics) for number in range(2 + chance.below(3)))
    partitions = [(topic.name, index) for topic in topics for index in range(len(topic.assignment))]
    admin = tuple(
        sorted(
            (
                AdminShape(chance.below(SAFETY_MS), pick(chance, ADMIN_ACTIONS), chance.bits64())
                for _ in range(chance.below(12))
            ),
            key=lambda one: one.at_ms,
        )
    )
    work = draw_work(seed, brokers)
    clients = tuple(one.name for one in producers)
    targets = len(partitions)
    if work is not None:
        settings.update(work.settings)
        clients, targets = clients + work.places, targets + len(work.partitions)
    faults = _draw_faults(chance, tuple(sorted({*brokers, *controllers})), clients, targets)
    is_beyond_budget = chance.below(14) == 0
    if is_beyond_budget:
        faults = tuple(_losing(one, number, brokers, len(partitions)) for number, one in enumerate(faults))
    work = None if is_beyond_budget else work
    directories, disk_faults = _draw_directories(seed, brokers, targets, has_several_directories)
    tunable: tuple[TopicShape | WorkTopic, ...] = (*topics, *(() if work is None else work.topics))
    rot = draw_rot(seed, brokers, len(partitions), work)
    return Shape(
        seed,
        brokers,
        controllers,
        settings,
        topics,
        producers,
        tuple(partitions),
        admin,
        tuple(sorted((*faults, *disk_faults, *rot), key=lambda one: one.at_ms)),
        racks,
        is_beyond_budget,
        chance.below(10) == 0,
        tuple(pick(chance, (0, 20, 150)) for _ in partitions),
        pick(chance, brokers) if len(brokers) > 1 and chance.below(3) == 0 else -1,
        pick(chance, (0, 0, 30)),
        work,
        directories=directories,
        min_isr_changes=_draw_min_isr_changes(seed, tunable, has_min_isr_changes),
    )


def _draw_directories(
    seed: int, brokers: Sequence[int], partitions: int, has_several: bool
) -> tuple[int, tuple[Fault, ...]]:
    """How many log directories brokers have, and faults of their disks besides the others where that is several.

    By a chance of its own, so that the rest of a seed is as it was.
    """
    chance = Chance(seed * 2 + 2_000_003)
    if chance.below(DIRECTORIES_SHARE) and not has_several:
        return 1, ()
    faults = tuple(
        Fault(
            500 + chance.below(SAFETY_MS - 500),
            pick(chance, DISK_FAULTS),
            (pick(chance, brokers),),
            pick(chance, (300, 1500, 4000, 8000)) + chance.below(500),
            ("data", "control"),
            chance.below(20_000),
            chance.below(partitions) if chance.below(2) else -1,
        )
        for _ in range(4 + chance.below(5))
    )
    return pick(chance, (2, 2, 3)), faults


def _draw_min_isr_changes(
    seed: int, topics: Sequence[TopicShape | WorkTopic], changes_anyway: bool
) -> tuple[MinIsrShape, ...]:
    """How min.insync.replicas changes, up and down, within the replicas that a topic has.

    In most topics it is never less than in the beginning, so that losses of bytes stay within the budget. By a chance
    of its own, so that the rest of a seed is as it was.
    """
    chance = Chance(seed * 2 + 4_000_037)
    if chance.below(MIN_ISR_SHARE) and not changes_anyway:
        return ()
    changes = []
    for topic in topics:
        most = min(map(len, topic.assignment))
        value = topic.min_insync_replicas
        least = 1 if value == most or chance.below(3) == 0 else value
        if value == most > 2 and chance.below(3):
            least = 2
        for at_ms in sorted(500 + chance.below(SAFETY_MS - 500) for _ in range(2 + chance.below(5))):
            others = [one for one in range(least, most + 1) if one != value]
            if others:
                value = pick(chance, others)
                patience_ms = pick(chance, (0, 1000, 4000))
                changes.append(MinIsrShape(at_ms, topic.name, value, patience_ms, chance.below(3) == 0))
    return tuple(sorted(changes, key=lambda one: one.at_ms))


def draw_rot(
    seed: int, brokers: Sequence[int], plain: int, work: WorkShape | None, share: int = ROT_SHARE
) -> tuple[Fault, ...]:
    """Rot in the topics of groups and transactions, of a seed that has them: `plain` partitions come before theirs.

    By a chance of its own, so that the rest of a seed is as it was.
    """
    chance = Chance(seed * 2 + 3_000_017)
    for _ in range(3):
        chance.bits64()
    if work is None or chance.below(share):
        return ()
    return tuple(
        Fault(
            2_000 + chance.below(SAFETY_MS - 4_000),
            ROT_OF_WORK,
            (pick(chance, brokers),),
            0,
            ("data", "control"),
            chance.below(20_000),
            plain + chance.below(len(work.partitions)) if chance.below(2) else -1,
        )
        for _ in range(2 + chance.below(3))
    )


def _draw_topic(chance: Chance, name: str, brokers: Sequence[int]) -> TopicShape:
    factor = min(len(brokers), pick(chance, (1, 2, 2, 3, 3, 3, 3)))
    assignment = []
    for _ in range(1 + chance.below(2)):
        rest = list(brokers)
        assignment.append(tuple(rest.pop(chance.below(len(rest))) for _ in range(factor)))
    least = min(factor, pick(chance, (1, 2, 2, 2, 3)))
    flush = 1 if chance.below(6) == 0 else None
    segment_bytes = pick(chance, (2_000, 20_000, 1 << 20))
    may_lose = chance.below(6) == 0
    return TopicShape(name, tuple(assignment), 1 if may_lose else least, flush, segment_bytes, may_lose)


def _draw_producer(chance: Chance, name: str, topics: Sequence[TopicShape]) -> ProducerShape:
    topic = pick(chance, topics)
    acks = pick(chance, ("all", "all", "all", "1", "0"))
    is_idempotent = acks == "all" and chance.below(3) > 0
    partition = chance.below(len(topic.assignment))
    return ProducerShape(name, acks, is_idempotent, topic.name, partition, 20 + chance.below(100))


def _draw_faults(chance: Chance, nodes: Sequence[int], clients: Sequence[str], partitions: int) -> tuple[Fault, ...]:
    """A swarm: some kinds of fault are left out altogether, so that others come often enough to meet each other."""
    kinds = [kind for kind in (*FAULT_KINDS, *OFTEN) if chance.below(5) < 3] or ["kill"]
    faults = []
    for _ in range(6 + chance.below(13)):
        kind = pick(chance, kinds)
        places: list[int | str] = list(nodes)
        first = places.pop(chance.below(len(places)))
        others = [*places, *(clients if chance.below(4) == 0 else ())]
        second = pick(chance, others) if others else clients[0]
        both = (first, second) if chance.below(2) else (second, first)
        is_network = kind in NETWORK_FAULTS
        faults.append(
            Fault(
                500 + chance.below(SAFETY_MS - 500),
                kind,
                both if is_network else (first,),
                pick(chance, (50, 300, 1500, 4000, 8000)) + chance.below(500),
                pick(chance, (("data",), ("control",), ("data", "control"), ("data", "control"))),
                pick(chance, (20, 150, 700)) if kind == "slow" else chance.below(20_000) - 10_000,
                chance.below(partitions) if kind == "strand" or chance.below(3) == 0 else -1,
            )
        )
    return tuple(sorted(faults, key=lambda one: one.at_ms))


def _losing(fault: Fault, number: int, brokers: Sequence[int], partitions: int) -> Fault:
    """Every other fault of a seed beyond the budget is a power loss of a leader: so the last one in sync is hit too."""
    if number % 2:
        return fault
    place = brokers[number // 2 % len(brokers)]
    return replace(fault, kind="power loss", places=(place,), aim=number // 2 % partitions)


def pick(chance: Chance, options: Sequence[Choice]) -> Choice:
    """One of several."""
    return options[chance.below(len(options))]
