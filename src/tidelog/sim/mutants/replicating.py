"""Bugs of leaders and followers."""

from __future__ import annotations

from typing import Any

from tidelog.errors import ErrorCode
from tidelog.log.producer_state import ProducerState
from tidelog.node.apis import fetch
from tidelog.replica.leadership import Leadership
from tidelog.replica.partition import Partition
from tidelog.sim.mutants.base import Hit, Mutant, Original


def _watermark_is_maximum(original: Original, hit: Hit) -> Original:
    def high_watermark(self: Leadership, own_end_offset: int, *more: Any) -> int | None:
        right: int | None = original(self, own_end_offset, *more)
        if right is not None and right < own_end_offset:
            hit()
            return own_end_offset
        return right

    return high_watermark


def _watermark_below_min_isr(original: Original, hit: Hit) -> Original:
    def high_watermark(
        self: Leadership, own_end_offset: int, leader_end_offset: int, _min_isr: int, *more: Any
    ) -> int | None:
        if original(self, own_end_offset, leader_end_offset, _min_isr, *more) is None:
            hit()
        result: int | None = original(self, own_end_offset, leader_end_offset, 1, *more)
        return result

    return high_watermark


def _acks_all_at_append(original: Original, hit: Hit) -> Original:
    def when_committed(self: Partition, end_offset: int, acknowledge: Any) -> None:
        if end_offset > self.high_watermark:
            hit()
        acknowledge(ErrorCode.NONE)

    return when_committed


def _consumer_reads_to_the_end(original: Original, hit: Hit) -> Original:
    def end_offset(self: Any, partition: Partition) -> int:
        right: int = original(self, partition)
        if right < partition.log.log_end_offset:
            hit()
        return partition.log.log_end_offset

    return end_offset


def _truncate_to_watermark(original: Original, hit: Hit) -> Original:
    def become_follower(self: Partition, leader_id: int, leader_epoch: int) -> None:
        original(self, leader_id, leader_epoch)
        if self.high_watermark < self.log.log_end_offset:
            hit()
            self.log.truncate_to(self.high_watermark, self._surroundings.outbox.now_ms)

    return become_follower


def _divergence_ignored(original: Original, hit: Hit) -> Original:
    def diverging_epoch(self: Partition, *asked: int | None) -> None:
        if original(self, *asked) is not None:
            hit()

    return diverging_epoch


def _isr_grows_early(original: Original, hit: Hit) -> Original:
    def grown_isr(self: Leadership, broker_id: int, high_watermark: int) -> tuple[int, ...] | None:
        right: tuple[int, ...] | None = original(self, broker_id, high_watermark)
        follower = self.followers.get(broker_id)
        if right is not None or self.proposed is not None or broker_id in self.isr or follower is None:
            return right
        if not self._is_eligible(broker_id, follower.broker_epoch):
            return None
        hit()
        return (*self.isr, broker_id)

    return grown_isr


def _duplicates_accepted(original: Original, hit: Hit) -> Original:
    def check_batch(self: ProducerState, *about: Any, **more: Any) -> Any:
        found = original(self, *about, **more)
        if found is not None:
            hit()

    return check_batch


def _stale_epoch_accepted(original: Original, hit: Hit) -> Original:
    def check_epoch(self: Partition, current_leader_epoch: int) -> None:
        if 0 <= current_leader_epoch != self.leader_epoch:
            hit()

    return check_epoch


MUTANTS = (
    Mutant(
        "watermark-is-maximum",
        "the leader counts what it has itself as committed",
        [(Leadership, "high_watermark", _watermark_is_maximum)],
    ),
    Mutant(
        "watermark-below-min-isr",
        "records are committed with fewer replicas in sync than min.insync.replicas (before KIP-966)",
        [(Leadership, "high_watermark", _watermark_below_min_isr)],
    ),
    Mutant(
        "acks-all-at-append",
        "acks=all is answered when the leader alone has the record",
        [(Partition, "when_committed", _acks_all_at_append)],
    ),
    Mutant(
        "consumer-reads-to-log-end",
        "consumers are served what is not committed",
        [(fetch._Fetch, "_end_offset", _consumer_reads_to_the_end)],
    ),
    Mutant(
        "truncate-to-watermark",
        "a new follower cuts its log to its watermark instead of asking where the logs part (before KIP-101)",
        [(Partition, "become_follower", _truncate_to_watermark)],
    ),
    Mutant(
        "divergence-ignored",
        "a leader does not tell a follower that their logs parted (before KIP-101)",
        [(Partition, "diverging_epoch", _divergence_ignored)],
    ),
    Mutant(
        "isr-grows-early",
        "a follower joins the ISR before it has what is committed and reached the start of the leader's epoch",
        [(Leadership, "grown_isr", _isr_grows_early)],
    ),
    Mutant(
        "duplicate-accepted",
        "a batch that is a retry of one in the log is appended again",
        [(ProducerState, "check_batch", _duplicates_accepted)],
    ),
    Mutant(
        "stale-leader-epoch-accepted",
        "fetches of another leader epoch are served (before KIP-320)",
        [(Partition, "check_epoch", _stale_epoch_accepted)],
    ),
)
