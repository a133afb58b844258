"""Bugs of what readers are given: consumers, and followers that ask where their logs part."""

from __future__ import annotations

from typing import Any

from tidelog.node.apis import fetch
from tidelog.replica.partition import Partition, Role
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.mutants.workloads import fast_leader_changes
from tidelog.storage import Slice


def _follower_reads_to_the_end(original: Original, hit: Hit) -> Original:
    def end_offset(self: Any, partition: Partition) -> int:
        right: int = original(self, partition)
        if partition.role is not Role.FOLLOWER or right >= partition.log.log_end_offset:
            return right
        hit()
        return partition.log.log_end_offset

    return end_offset


def _cut_slice_is_sent(original: Any, hit: Hit) -> Any:
    def valid(self: Slice) -> bool:
        if original.fget(self) or self.file.generation < 0:  # below: of a process that is gone, which sends nothing
            return self.file.generation >= 0
        hit()
        return True

    return property(valid)


def _stale_watermark_told(original: Any, hit: Hit) -> Any:
    def is_watermark_stale(self: Partition) -> bool:
        if original.fget(self):
            hit()
        return False

    return property(is_watermark_stale)


def _epoch_not_compared(original: Original, hit: Hit) -> Original:
    def diverging_epoch(
        self: Partition, last_fetched_epoch: int, fetch_offset: int, _start: int | None = None
    ) -> tuple[int, int] | None:
        right: tuple[int, int] | None = original(self, last_fetched_epoch, fetch_offset)
        if right is None or right[0] == last_fetched_epoch:
            return right
        hit()
        return (last_fetched_epoch, right[1]) if right[1] < fetch_offset else None

    return diverging_epoch


MUTANTS = (
    Mutant(
        "follower-serves-past-watermark",
        "a follower serves consumers what it does not know to be committed",
        [(fetch._Fetch, "_end_offset", _follower_reads_to_the_end)],
    ),
    Mutant(
        "slice-sent-after-truncation",
        "an answer is sent although the log was cut under its records",
        [(Slice, "valid", _cut_slice_is_sent)],
    ),
    Mutant(
        "stale-latest-offset",
        "a new leader tells its watermark as the latest offset before it has caught up with it (before KIP-207)",
        [(Partition, "is_watermark_stale", _stale_watermark_told)],
    ),
    Mutant(
        "epoch-end-without-epoch",
        "a leader says where an epoch ends, not of which epoch it speaks: after fast changes logs stay apart "
        "(before KIP-279)",
        [(Partition, "diverging_epoch", _epoch_not_compared)],
        fast_leader_changes,
    ),
)
