"""What groups and transactions do in one seed of the swarm. Data, drawn once; nothing here runs.

ledger   transactional producers write to it, across its partitions
copy     whoever transforms reads a partition of the ledger and writes each record again, here
state    a compacted topic, written by key, with deletions
__consumer_offsets, __transaction_state   as the coordinators keep them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tidelog.outbox import Chance

LEDGER, COPY, STATE = "ledger", "copy", "state"
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
SHARE = 3
"""In one seed of so many there are groups and transactions."""
LEDGER_PARTITIONS = 2
CLASSIC, CONSUMER, CHANGING = "classic", "consumer", "changing"
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class WorkTopic:
    """A topic of this work, and what is set on it."""

    name: str
    assignment: tuple[tuple[int, ...], ...]
    min_insync_replicas: int
    configs: tuple[tuple[str, str], ...]
    may_lose: bool = False
    """unclean.leader.election.enable"""


@dataclass(frozen=True, slots=True)
class TransactorShape:
    """A producer with a transactional id: what it does, and how."""

    name: str
    transactional_id: str
    draw: int
    """Decides on the rest of its life."""
    is_v2: bool
    transforms: bool
    partition: int
    """Which one of the ledger it transforms."""
    is_first: bool
    """Of those with one transactional id: who ends what is left to do."""
    has_rival: bool
    begins_ms: int
    interval_ms: int
    timeout_ms: int
    """transaction.timeout.ms"""
    patience_ms: int
    is_hasty: bool
    """Whether it aborts when an answer does not come, instead of asking again."""


@dataclass(frozen=True, slots=True)
class MemberShape:
    """A member of a group."""

    name: str
    group: str
    protocol: str
    """classic, consumer (KIP-848), or changing: one or the other, anew in each life"""
    draw: int
    is_first: bool
    begins_ms: int
    poll_ms: int
    is_cooperative: bool = False
    """Of the classic protocol: keeps what it has while the group is rebalanced (KIP-429)."""
    is_static: bool = False
    """Has a name that stays the same from life to life (KIP-345)."""


@dataclass(frozen=True, slots=True)
class WorkShape:
    """All of it."""

    topics: tuple[WorkTopic, ...]
    settings: tuple[tuple[str, str], ...]
    transactors: tuple[TransactorShape, ...]
    members: tuple[MemberShape, ...]
    draw: int
    state_delivery_ms: int = 0
    """When whoever writes by key gives a record up; 0 when nobody writes by key."""

    @property
    def partitions(self) -> tuple[tuple[str, int], ...]:
        """Every partition, by topic and number."""
        return tuple((topic.name, index) for topic in self.topics for index in range(len(topic.assignment)))

    @property
    def places(self) -> tuple[str, ...]:
        """Where the clients stand."""
        return (*(one.name for one in self.transactors), *(one.name for one in self.members))


SETTINGS = (
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),
    ("offsets.retention.minutes", "10"),
    ("offsets.retention.check.interval.ms", "2000"),
    ("group.min.session.timeout.ms", "500"),
    ("group.consumer.min.session.timeout.ms", "1500"),
    ("group.consumer.session.timeout.ms", "2500"),
    ("group.consumer.min.heartbeat.interval.ms", "200"),
    ("group.consumer.heartbeat.interval.ms", "400"),
    ("log.cleaner.backoff.ms", "700"),
)


KEYED = (
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "3600000"),
    ("file.delete.delay.ms", "500"),
)
BOTH, GROUPS_ONLY, TRANSACTIONS_ONLY = "both", "groups", "transactions"


def draw_work(seed: int, brokers: Sequence[int], share: int = SHARE, wanted_kind: str = "") -> WorkShape | None:
    """The work of a seed; None in most of them. Drawn apart from the rest, which is the same with it and without."""
    chance = Chance(seed * 2 + 1_000_003)
    for _ in range(3):
        chance.bits64()
    if chance.below(share):
        return None
    factor = min(len(brokers), _pick(chance, (1, 3, 3, 3)))
    least = min(factor, 2)
    is_compacted = chance.below(2) == 0
    coordination = (
        ("cleanup.policy", "compact"),
        ("internal.segment.bytes", "2000" if is_compacted else str(1 << 20)),
        ("min.cleanable.dirty.ratio", "0.01" if is_compacted else "0.9"),
    )
    plain = (("internal.segment.bytes", _pick(chance, ("1500", "20000"))),)
    keyed = (*KEYED, ("internal.segment.bytes", _pick(chance, ("250", "900"))))
    state_delivery_ms = _pick(chance, (0, 0, 0, 0, 120_000, 1_500))
    wanted = [
        (LEDGER, LEDGER_PARTITIONS, plain),
        (COPY, LEDGER_PARTITIONS, plain),
        (OFFSETS, 1 + chance.below(2), coordination),
        (TRANSACTIONS, 1 + chance.below(2), coordination),
    ]
    topics = [
        WorkTopic(name, tuple(_replicas(chance, brokers, factor) for _ in range(count)), least, configs)
        for name, count, configs in wanted
    ]
    if state_delivery_ms:
        may_lose = chance.below(3) == 0
        topics.append(
            WorkTopic(STATE, (_replicas(chance, brokers, factor),), 1 if may_lose else least, keyed, may_lose)
        )
    settings = (*SETTINGS, ("group.initial.rebalance.delay.ms", _pick(chance, ("0", "300"))))
    kind = wanted_kind or _pick(chance, (TRANSACTIONS_ONLY, GROUPS_ONLY, BOTH))
    transactors = _draw_transactors(chance)
    if kind == GROUPS_ONLY:
        transactors = (replace(transactors[0], has_rival=False),)  # somebody has to write what members read
    members = () if kind == TRANSACTIONS_ONLY else _draw_members(chance)
    return WorkShape(tuple(topics), settings, transactors, members, chance.bits64(), state_delivery_ms)


def _replicas(chance: Chance, brokers: Sequence[int], factor: int) -> tuple[int, ...]:
    rest = list(brokers)
    return tuple(rest.pop(chance.below(len(rest))) for _ in range(factor))


def _draw_transactors(chance: Chance) -> tuple[TransactorShape, ...]:
    """A writer or two, and somebody who transforms; some of them have rivals."""
    found: list[TransactorShape] = []
    wanted = [("w0", False), ("x0", True)]
    wanted += [("w1", False)] if chance.below(2) else []
    for transactional_id, transforms in wanted:
        rivals = 1 + (chance.below(2) if transforms else chance.below(3) // 2 + chance.below(2))
        is_v2 = chance.below(2) == 0
        partition = chance.below(LEDGER_PARTITIONS)
        timeout_ms = _pick(chance, (3_000, 6_000, 20_000))
        for number in range(rivals):
            is_hasty = chance.below(2) == 0
            found.append(
                TransactorShape(
                    f"{transactional_id}-{number}",
                    transactional_id,
                    chance.bits64(),
                    is_v2,
                    transforms,
                    partition,
                    number == 0,
                    rivals > 1,
                    chance.below(1_000) + number * 700,
                    30 + chance.below(250),
                    timeout_ms,
                    150 + chance.below(250) if is_hasty else 2_500,
                    is_hasty,
                )
            )
    return tuple(found)


def _draw_members(chance: Chance) -> tuple[MemberShape, ...]:
    """A group or two, most of one protocol; one member of three is static."""
    found: list[MemberShape] = []
    for number in range(1 + chance.below(2)):
        protocol = _pick(chance, (CLASSIC, CLASSIC, CONSUMER, CONSUMER, CHANGING))
        is_cooperative = protocol != CONSUMER and chance.below(2) == 0
        found += [
            MemberShape(
                f"g{number}-m{member}",
                f"g{number}",
                protocol,
                chance.bits64(),
                member == 0,
                chance.below(3_000),
                200 + chance.below(300),
                is_cooperative,
                protocol != CHANGING and chance.below(3) == 0,
            )
            for member in range(2 + chance.below(2))
        ]
    return tuple(found)


def _pick(chance: Chance, options: Sequence[Choice]) -> Choice:
    return options[chance.below(len(options))]
