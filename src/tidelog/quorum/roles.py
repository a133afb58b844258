"""The roles of a replica in its quorum, and the only ways from one to another (KIP-595, KIP-996).

    Unattached    -> Unattached   a higher epoch is heard of, or a vote is given
                     Prospective  the election timeout passed
                     Follower     a leader of this or a higher epoch is heard of
    Prospective   -> Unattached   a higher epoch is heard of, or the pre-vote was lost and no leader is known
                     Candidate    a majority would vote for this replica
                     Follower     a leader is heard of, or the pre-vote was lost and the leader is still known
    Candidate     -> Unattached   a higher epoch is heard of
                     Prospective  the votes were refused, or the election timeout passed
                     Leader       a majority voted for this replica
                     Follower     another leader of this or a higher epoch is heard of
    Leader        -> Unattached   a higher epoch is heard of
                     Follower     a leader of a higher epoch is heard of
                     Resigned     the node stops, lost its majority, or was removed from the voters
    Follower      -> Unattached   a higher epoch is heard of
                     Prospective  nothing was fetched for the fetch timeout, or the leader's connection broke
                     Follower     a leader of a higher epoch is heard of
    Resigned      -> Unattached   a higher epoch is heard of, or the election timeout passed (one epoch higher)
                     Prospective  it led before a restart, and asks whether it may lead again
                     Follower     a leader of a higher epoch is heard of

A replica that is no voter is only ever Unattached or Follower. Epochs never go down. An epoch has one vote of each
replica, and what this replica voted or who it knows as leader in an epoch never changes within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from tidelog.outbox import Timer
from tidelog.quorum.voters import Peer, ReplicaKey

if TYPE_CHECKING:
    from tidelog.quorum.download import Download


class RoleName(Enum):
    """What a replica is in its quorum."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


_U, _P, _C = RoleName.UNATTACHED, RoleName.PROSPECTIVE, RoleName.CANDIDATE
_L, _F, _R = RoleName.LEADER, RoleName.FOLLOWER, RoleName.RESIGNED

TRANSITIONS: Mapping[RoleName, frozenset[RoleName]] = {
    _U: frozenset({_U, _P, _F}),
    _P: frozenset({_U, _C, _F}),
    _C: frozenset({_U, _P, _L, _F}),
    _L: frozenset({_U, _F, _R}),
    _F: frozenset({_U, _P, _F}),
    _R: frozenset({_U, _P, _F}),
}


class Role:
    """What a replica knows only while it has one role; its timers end with it."""

    name: RoleName

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def cancel_timers(self) -> None:
        """The role is over."""
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


class Unattached(Role):
    """Knows of no leader it could fetch from."""

    name = RoleName.UNATTACHED


class Election(Role):
    """Asks the other voters for something and counts their answers."""

    def __init__(self, granted: set[int], retries: int) -> None:
        super().__init__()
        self.granted = granted
        self.rejected: set[int] = set()
        self.retries = retries
        """Elections in a row that this replica lost."""


class Prospective(Election):
    """Asks whether it would get votes before it raises the epoch and disturbs anyone (KIP-996)."""

    name = RoleName.PROSPECTIVE

    def __init__(self, own_id: int, retries: int, leader: Peer | None) -> None:
        super().__init__({own_id}, retries)
        self.leader = leader
        """The leader it followed, to go back to when the others still hear it."""


class Candidate(Election):
    """Voted for itself in a new epoch and asks the others for their votes."""

    name = RoleName.CANDIDATE

    def __init__(self, own_id: int, retries: int) -> None:
        super().__init__({own_id}, retries)


class Follower(Role):
    """Fetches from the leader of its epoch."""

    name = RoleName.FOLLOWER

    def __init__(self, leader: Peer) -> None:
        super().__init__()
        self.leader = leader
        self.has_fetched = False
        """Whether this leader has answered a fetch: if so, others are told that there is no need for an election."""
        self.leader_resigned = False
        self.leader_high_watermark: int | None = None
        """What this leader has committed, once it committed a record of its own epoch."""
        self.fetching = False
        self.answers = 0
        """Fetches that this leader has answered."""
        self.fetch_timer: Timer | None = None
        self.download: Download | None = None


class Resigned(Role):
    """Led its epoch and gave that up; it neither leads nor votes in it again."""

    name = RoleName.RESIGNED

    def __init__(self, unacknowledged: dict[int, ReplicaKey], preferred: list[ReplicaKey]) -> None:
        super().__init__()
        self.unacknowledged = unacknowledged
        self.preferred = preferred
