"""Bugs of the high watermark and of who counts for it."""

from __future__ import annotations

from typing import Any

from tidelog.errors import ErrorCode
from tidelog.replica.leadership import Leadership
from tidelog.replica.partition import Partition
from tidelog.sim.mutants.base import Hit, Mutant, Original


def _least_of(leadership: Leadership, own_end_offset: int, members: set[int]) -> int:
    ends = (one.log_end_offset for broker_id, one in leadership.followers.items() if broker_id in members)
    return min(own_end_offset, *ends, own_end_offset)


def _counting(members_of: Any) -> Any:
    """The rule of the watermark with another idea of whom to wait for."""

    def make(original: Original, hit: Hit) -> Original:
        def high_watermark(self: Leadership, own_end_offset: int, *more: Any) -> int | None:
            right: int | None = original(self, own_end_offset, *more)
            members = members_of(self)
            if right is None or members is None:
                return right
            wrong = _least_of(self, own_end_offset, members)
            if wrong != right:
                hit()
            return wrong

        return high_watermark

    return make


def _shrunk(leadership: Leadership) -> set[int] | None:
    proposed = leadership.proposed
    if proposed is None or not set(proposed) < set(leadership.isr):
        return None
    return set(proposed)


def _goes_back(original: Original, hit: Hit) -> Original:
    def advance_high_watermark(self: Partition) -> None:
        original(self)
        leadership = self.leadership
        if leadership is None:
            return
        new = max(self.log.log_start_offset, _least_of(leadership, self.durable_end_offset, set(leadership.isr)))
        if new < self.high_watermark:
            hit()
            self.high_watermark = new

    return advance_high_watermark


def _progress_forgotten(original: Original, hit: Hit) -> Original:
    def update(self: Leadership, replicas: Any, isr: Any, partition_epoch: int, now_ms: int) -> None:
        if 0 <= self.partition_epoch < partition_epoch:
            self.followers.clear()
        original(self, replicas, isr, partition_epoch, now_ms)

    return update


def _epoch_start_ignored(original: Original, hit: Hit) -> Original:
    def grown_isr(self: Leadership, broker_id: int, high_watermark: int) -> tuple[int, ...] | None:
        right: tuple[int, ...] | None = original(self, broker_id, high_watermark)
        start, self.epoch_start_offset = self.epoch_start_offset, 0
        wrong: tuple[int, ...] | None = original(self, broker_id, high_watermark)
        self.epoch_start_offset = start
        if wrong != right:
            hit()
        return wrong

    return grown_isr


def _fenced_leader_acknowledges(original: Original, hit: Hit) -> Original:
    def fail_waiters(self: Partition, code: ErrorCode) -> None:
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            for waiters in (self._committed_waiters, self._durable_waiters):
                while waiters:
                    hit()
                    waiters.popleft()[1](ErrorCode.NONE)
        original(self, code)

    return fail_waiters


MUTANTS = (
    Mutant(
        "watermark-waits-for-the-dead",
        "the watermark waits for every replica, also for one that is dead and not in the ISR",
        [(Leadership, "high_watermark", _counting(lambda leadership: set(leadership.followers)))],
    ),
    Mutant(
        "growth-not-waited-for",
        "the watermark does not wait for a replica whose way into the ISR is under way",
        [(Leadership, "high_watermark", _counting(lambda leadership: set(leadership.isr)))],
    ),
    Mutant(
        "shrink-counted-early",
        "a replica that the leader wants out of the ISR no longer counts, before the controller committed that",
        [(Leadership, "high_watermark", _counting(_shrunk))],
    ),
    Mutant(
        "watermark-goes-back",
        "a change of the ISR lets a leader forget what its followers have, and the watermark goes back with it",
        [(Partition, "advance_high_watermark", _goes_back), (Leadership, "update", _progress_forgotten)],
    ),
    Mutant(
        "epoch-start-ignored",
        "a follower joins the ISR before it has reached the start of the leader's epoch",
        [(Leadership, "grown_isr", _epoch_start_ignored)],
    ),
    Mutant(
        "fenced-leader-acknowledges",
        "a leader that was replaced acknowledges what still waited to be committed",
        [(Partition, "_fail_waiters", _fenced_leader_acknowledges)],
    ),
)
