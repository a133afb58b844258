"""Bugs of the quorum: votes, what is committed, and snapshots of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelog.events import Request
from tidelog.quorum import elections
from tidelog.quorum.commits import Commits
from tidelog.quorum.core import Core
from tidelog.quorum.elections import Elections
from tidelog.quorum.leadership import Leader, Leadership
from tidelog.quorum.snapshots import Snapshots
from tidelog.quorum.voters import ReplicaKey, VoterSet
from tidelog.sim.mutants.base import Hit, Mutant, Original


def _votes_again(original: Original, hit: Hit) -> Original:
    def grants(self: Elections, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        core = self._core
        right = bool(original(self, candidate, up_to_date, pre_vote))
        voted = core.election.voted
        is_second = not pre_vote and voted is not None and not core.election.has_voted_for(candidate)
        if right or not is_second or not up_to_date or core.election.leader_id is not None or core.log.lost_records:
            return right
        hit()
        return True

    return grants


def _answers_at_once(original: Original, hit: Hit) -> Original:
    def reply(self: Core, request: Request, body: Any) -> None:
        if not self.is_durable:
            hit()
        self.outbox.reply(request.connection_id, request.slot, body)

    return reply


def _directory_ignored(original: Original, hit: Hit) -> Original:
    def is_voter(self: VoterSet, key: ReplicaKey) -> bool:
        right = bool(original(self, key))
        wrong = self.get(key.id) is not None
        if wrong and not right:
            hit()
        return wrong

    return is_voter


def _any_replica_is_meant(original: Original, hit: Hit) -> Original:
    def is_for_replica(core: Core, voter_id: int, directory_id: bytes) -> bool:
        wrong = voter_id < 0 or voter_id == core.identity.node_id
        if wrong and not original(core, voter_id, directory_id):
            hit()
        return wrong

    return is_for_replica


def _counting_commits(original: Original, hit: Hit) -> Original:
    def update_high_watermark(self: Leadership, leader: Leader) -> None:
        start = leader.epoch_start_offset
        if (leader.high_watermark or 0) < self._majority_end_offset(leader) <= start and self._core.is_durable:
            hit()
        leader.epoch_start_offset = -1
        try:
            original(self, leader)
        finally:
            leader.epoch_start_offset = start

    return update_high_watermark


def _told_early(original: Original, hit: Hit) -> Original:
    def tell(self: Commits) -> None:
        committed = self.high_watermark
        if self._log.end_offset > committed:
            hit()
        self.high_watermark = max(committed, self._log.end_offset)
        try:
            original(self)
        finally:
            self.high_watermark = committed

    return tell


def _last_record_left_out(original: Original, hit: Hit) -> Original:
    def write(self: Snapshots, records: Iterable[Any], *more: Any) -> Any:
        every = list(records)
        if every:
            hit()
        return original(self, every[:-1], *more)

    return write


MUTANTS = (
    Mutant("votes-twice", "a voter votes for two candidates of an epoch", [(Elections, "_grants", _votes_again)]),
    Mutant(
        "vote-not-flushed",
        "a vote is told before it is on the medium",
        [(Core, "reply", _answers_at_once)],
    ),
    Mutant(
        "wiped-voter-votes",
        "a voter that lost its disk votes as if it were the same (before KIP-853)",
        [(VoterSet, "is_voter", _directory_ignored), (elections, "is_for_replica", _any_replica_is_meant)],
    ),
    Mutant(
        "committed-by-count",
        "a leader commits what an earlier one left because a majority has it (against Raft §5.4.2)",
        [(Leadership, "update_high_watermark", _counting_commits)],
    ),
    Mutant(
        "metadata-applied-early",
        "a node applies metadata that is not committed",
        [(Commits, "tell", _told_early)],
    ),
    Mutant(
        "snapshot-one-short",
        "a snapshot of the metadata lacks its last record",
        [(Snapshots, "write", _last_record_left_out)],
    ),
)
