"""One member of a consumer group, as its records say it.

STABLE                -> UNREVOKED_PARTITIONS    the target takes partitions away that it still has
                      -> UNRELEASED_PARTITIONS   the target gives it partitions that others still have
UNREVOKED_PARTITIONS  -> either of the others    it said that it gave them up
UNRELEASED_PARTITIONS -> either of the others    others gave them up, or the target changed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic without partitions."""
NOTHING: Assignment = {}

LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""A static member goes and means to come back: its place is kept."""


class MemberState(IntEnum):
    """See the head of this file; the numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ClassicInfo:
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """Who it is, what it wants, and how far it is with its assignment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    """A regular expression over topic names, besides the topics named."""
    server_assignor: str | None = None
    classic: ClassicInfo | None = None
    """Set while the member speaks the classic protocol in a group of this one."""
    epoch: int = 0
    previous_epoch: int = 0
    """A request with it is accepted: the answer that raised the epoch may have been lost."""
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)
    """Taken away, and nobody else's before the member has said that it gave them up."""

    def same_metadata(self, other: ConsumerMember) -> bool:
        """Whether its metadata record would say the same."""
        return _metadata(self) == _metadata(other)

    def same_progress(self, other: ConsumerMember) -> bool:
        """Whether its assignment record would say the same."""
        return _progress(self) == _progress(other)

    def is_settled_at(self, epoch: int) -> bool:
        """Whether it has what the assignment of an epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def _metadata(member: ConsumerMember) -> tuple[object, ...]:
    return (
        *(member.instance_id, member.rack_id, member.client_id, member.client_host, member.rebalance_timeout_ms),
        *(member.topics, member.pattern, member.server_assignor, member.classic),
    )


def _progress(member: ConsumerMember) -> tuple[object, ...]:
    return member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking
