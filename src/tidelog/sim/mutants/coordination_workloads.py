"""Named workloads for bugs of groups and transactions: three brokers, little else to do, and faults where it hurts.

Clients, checkers, budget and the liveness phase are the swarm's, and the seed still decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.outbox import Chance
from tidelog.sim.shape import (
    FIRST_CONTROLLER,
    ROT_OF_WORK,
    SAFETY_MS,
    Fault,
    ProducerShape,
    Shape,
    TopicShape,
    draw,
    pick,
)
from tidelog.sim.work_shape import (
    BOTH,
    GROUPS_ONLY,
    KEYED,
    OFFSETS,
    STATE,
    TRANSACTIONS,
    TRANSACTIONS_ONLY,
    WorkShape,
    WorkTopic,
    draw_work,
)

BROKERS = (1, 2, 3)
EITHER = ("data", "control")
DEATHS = ("kill", "power loss", "pause", "isolate")


def rivals(seed: int) -> Shape:
    """Producers that share their transactional ids, and some that die."""
    return _with_deaths(seed, TRANSACTIONS_ONLY, 4)


def restless_coordinators(seed: int) -> Shape:
    """Whoever coordinates dies again and again, some with what the others have not got yet."""
    return _with_deaths_of_coordinators(seed, TRANSACTIONS_ONLY, TRANSACTIONS)


def late_writes(seed: int) -> Shape:
    """Producers of transactions v1 that do not wait for long, and a network that brings what they gave up later."""
    chance = Chance(seed * 2 + 1)
    work = _work(seed, TRANSACTIONS_ONLY)
    work = replace(
        work,
        transactors=tuple(
            replace(one, is_v2=False, is_hasty=True, patience_ms=150, has_rival=False, interval_ms=20)
            for one in work.transactors
            if one.is_first
        ),
    )
    return _with(seed, work, _scattered(chance, 60, ("hold",), 700, work.places))


def sleepy_members(seed: int) -> Shape:
    """Members that sleep, leave and die, and little else that goes wrong."""
    return _with_deaths(seed, GROUPS_ONLY, 2)


def restless_groups(seed: int) -> Shape:
    """The same, with coordinators of groups that die before others have what they were told."""
    return _with_deaths_of_coordinators(seed, GROUPS_ONLY, OFFSETS)


def laggards(seed: int) -> Shape:
    """A compacted topic that three brokers clean on their own, while each is away for a while now and then."""
    chance = Chance(seed * 2 + 1)
    faults = _scattered(chance, 16, ("kill", "kill", "pause", "power loss"), 6_000)
    return _with(seed, _keyed(seed, 120_000), faults)


def impatient_writer(seed: int) -> Shape:
    """Leaders of a compacted topic that die with what nobody else has, and a writer that does not come again."""
    chance = Chance(seed * 2 + 1)
    return _with(seed, _keyed(seed, 1_500), _in_turn(chance, ("strand",), 6))


def lonely_leaders(seed: int) -> Shape:
    """Leaders of a compacted topic that are alone in sync and then stand still: others lead on with less."""
    chance = Chance(seed * 2 + 1)
    # What is cut reaches into the newest segment that is closed: only that one stays in use when its log is cut.
    work = _keyed(seed, 120_000, may_lose=True, segment_bytes=4_000)
    return _with(seed, work, _in_turn(chance, ("isolate", "pause"), 2))


def rotten_keys(seed: int) -> Shape:
    """A compacted topic of which one replica rots while it is compacted."""
    chance = Chance(seed * 2 + 1)
    return _with(seed, _keyed(seed, 120_000), _rotting(chance, 4) + _scattered(chance, 4, ("kill", "pause"), 3_000))


def rotten_coordinators(seed: int) -> Shape:
    """Logs of coordinators rot on one broker, and whoever coordinates dies again and again."""
    chance = Chance(seed * 2 + 1)
    work = _work(seed, BOTH)
    segments = {"internal.segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.9"}  # closed ones are flushed
    topics = tuple(
        replace(topic, configs=tuple({**dict(topic.configs), **segments}.items()))
        if topic.name in (OFFSETS, TRANSACTIONS)
        else topic
        for topic in work.topics
    )
    work = replace(work, topics=topics)
    deaths = [*_aimed(chance, work, OFFSETS, 5), *_aimed(chance, work, TRANSACTIONS, 5)]
    return _with(seed, work, sorted(_rotting(chance, 8) + deaths, key=lambda one: one.at_ms))


def _rotting(chance: Chance, count: int) -> list[Fault]:
    """Bits turn around on a broker that may lose bytes, in one partition after the other."""
    broker = pick(chance, BROKERS[1:])
    return [
        Fault(6_000 + chance.below(SAFETY_MS - 12_000), ROT_OF_WORK, (broker,), 0, EITHER, chance.below(20_000))
        for _ in range(count)
    ]


def _with_deaths(seed: int, kind: str, count: int) -> Shape:
    """Work of one kind, and so many brokers that go away for a while, whichever they are."""
    return _with(seed, _work(seed, kind), _scattered(Chance(seed * 2 + 1), count, DEATHS, 3_000))


def _with_deaths_of_coordinators(seed: int, kind: str, topic: str) -> Shape:
    """Work of one kind, and deaths of those who lead the topic in which its coordinators keep what they know."""
    work = _work(seed, kind)
    return _with(seed, work, _aimed(Chance(seed * 2 + 1), work, topic, 9))


def _keyed(seed: int, delivery_ms: int, *, may_lose: bool = False, segment_bytes: int = 250) -> WorkShape:
    """Somebody who writes by key, and nothing else."""
    work = draw_work(seed, BROKERS, 1, TRANSACTIONS_ONLY)
    assert work is not None
    configs = {**dict(KEYED), "internal.segment.bytes": str(segment_bytes)}
    topic = WorkTopic(STATE, (BROKERS,), 1 if may_lose else 2, tuple(configs.items()), may_lose)
    settings = tuple({**dict(work.settings), "log.cleaner.backoff.ms": "300"}.items())
    return replace(work, topics=(topic,), settings=settings, transactors=(), members=(), state_delivery_ms=delivery_ms)


def _in_turn(chance: Chance, kinds: Sequence[str], step: int) -> list[Fault]:
    """Whoever leads the keyed topic is hit by one kind after the other, two seconds apart."""
    faults = []
    at_ms = 2_000
    while at_ms < SAFETY_MS - 4_000:
        for kind in kinds:
            duration_ms = 2_600 + chance.below(400)
            faults.append(Fault(at_ms, kind, (pick(chance, BROKERS),), duration_ms, ("data",), 6, 1))
            at_ms += 2_400
        at_ms += step * 1_000
    return faults


def _work(seed: int, kind: str) -> WorkShape:
    """Three replicas of everything, and no keyed topic."""
    work = draw_work(seed, BROKERS, 1, kind)
    assert work is not None
    topics = tuple(
        replace(
            topic,
            assignment=tuple(BROKERS[index % 3 :] + BROKERS[: index % 3] for index in range(len(topic.assignment))),
            min_insync_replicas=2,
        )
        for topic in work.topics
        if topic.name != STATE
    )
    return replace(work, topics=topics, state_delivery_ms=0)


def _scattered(
    chance: Chance, count: int, kinds: Sequence[str], spread_ms: int, clients: Sequence[str] = ()
) -> list[Fault]:
    """Faults at any time, of brokers; or, where clients are named, of the way from one of those to a broker."""
    faults = []
    for _ in range(count):
        kind = pick(chance, kinds)
        at_ms = 2_000 + chance.below(SAFETY_MS - 4_000)
        broker = pick(chance, BROKERS)
        places = (pick(chance, clients), broker) if clients else (broker,)
        faults.append(Fault(at_ms, kind, places, 300 + chance.below(spread_ms), EITHER, 1))
    return sorted(faults, key=lambda one: one.at_ms)


def _aimed(chance: Chance, work: WorkShape, topic: str, count: int) -> list[Fault]:
    """Deaths of those who lead a topic's partitions, half of them with records that are nowhere else."""
    targets = [number for number, (name, _) in enumerate(work.partitions) if name == topic]
    faults = []
    at_ms = 1_500
    for _ in range(count):
        at_ms += 1_500 + chance.below(2_500)
        if at_ms >= SAFETY_MS:
            break
        aim = 1 + pick(chance, targets)  # the partition of the plain topic comes first
        kind = pick(chance, ("kill", "strand"))
        faults.append(Fault(at_ms, kind, (pick(chance, BROKERS),), 700 + chance.below(1_200), EITHER, 1, aim))
    return faults


def _with(seed: int, work: WorkShape, faults: Sequence[Fault]) -> Shape:
    topic = TopicShape("t0", ((1,),), 1, None, 1 << 20)
    shape = draw(seed)
    return replace(
        shape,
        brokers=BROKERS,
        controllers=(FIRST_CONTROLLER,),
        settings={
            **shape.settings,
            **dict(work.settings),
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "300",
            "replica.lag.time.max.ms": "1500",
        },
        topics=(topic,),
        producers=(ProducerShape("p0", "all", True, topic.name, 0, 500),),
        consumers=((topic.name, 0),),
        admin=(),
        faults=tuple(faults),
        racks={},
        is_beyond_budget=False,
        directories=1,
        min_isr_changes=(),
        poll_ms=(150,),
        absent=-1,
        asks_every_ms=0,
        work=work,
    )
