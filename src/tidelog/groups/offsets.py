"""Committed offsets of all groups of one shard, and those of open transactions, which count only after the marker.

nothing -> COMMITTED                 a plain commit
nothing | COMMITTED -> also PENDING  a commit within a transaction, by producer id
PENDING -> COMMITTED                 the transaction's commit marker, unless a later plain commit came before it
PENDING -> as before                 its abort marker
COMMITTED and PENDING -> nothing     a tombstone
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

TopicPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    """Where a group stands in a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """When it ends, where an old client said so itself (before version 5 of OffsetCommit); else -1."""


class Offsets:
    """Changed by replayed records only."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, tuple[int, CommittedOffset]]] = {}
        """By group, with the place in the order of replay."""
        self._pending: dict[int, dict[str, dict[TopicPartition, tuple[int, CommittedOffset]]]] = {}
        """By producer id and group: of transactions that are not ended."""
        self._pending_producers: dict[str, dict[TopicPartition, set[int]]] = {}
        """Which producers have a pending offset. Invariant: the same as `_pending`, the other way round."""
        self._order = 0

    # --- reading ---

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """What a group has committed for a partition."""
        found = self._committed.get(group_id, {}).get((topic, partition))
        return None if found is None else found[1]

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        """All that a group has committed."""
        for key, (_, committed) in self._committed.get(group_id, {}).items():
            yield key, committed

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction is about to change a partition's offset."""
        return (topic, partition) in self._pending_producers.get(group_id, {})

    def has_any_pending(self, group_id: str) -> bool:
        """Whether an open transaction is about to change any offset of a group."""
        return group_id in self._pending_producers

    def knows(self, group_id: str) -> bool:
        """Whether a group has offsets, committed or pending."""
        return group_id in self._committed or group_id in self._pending_producers

    def groups(self) -> set[str]:
        """Every group with offsets."""
        return {*self._committed, *self._pending_producers}

    def partitions_of_group(self, group_id: str) -> set[TopicPartition]:
        """Every partition a group has an offset of, committed or pending: what a deletion must name."""
        return {*self._committed.get(group_id, ()), *self._pending_producers.get(group_id, ())}

    # --- replaying ---

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """A plain commit."""
        self._order += 1
        self._committed.setdefault(group_id, {})[topic, partition] = (self._order, committed)

    def commit_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        """A commit within a transaction."""
        self._order += 1
        key = (topic, partition)
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {})[key] = (self._order, committed)
        self._pending_producers.setdefault(group_id, {}).setdefault(key, set()).add(producer_id)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """The transaction's marker: what it committed counts now, or never did."""
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            for key, (order, committed) in offsets.items():
                self._forget_pending_producer(producer_id, group_id, key)
                if is_commit:
                    known = self._committed.setdefault(group_id, {})
                    if key not in known or known[key][0] < order:
                        known[key] = (order, committed)

    def delete(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone: pending offsets go with it."""
        key = (topic, partition)
        committed = self._committed.get(group_id)
        if committed is not None:
            committed.pop(key, None)
            if not committed:
                del self._committed[group_id]
        for producer_id in list(self._pending_producers.get(group_id, {}).get(key, ())):
            groups = self._pending[producer_id]
            groups[group_id].pop(key, None)
            if not groups[group_id]:
                del groups[group_id]
            if not groups:
                del self._pending[producer_id]
            self._forget_pending_producer(producer_id, group_id, key)

    def _forget_pending_producer(self, producer_id: int, group_id: str, key: TopicPartition) -> None:
        by_partition = self._pending_producers[group_id]
        by_partition[key].discard(producer_id)
        if not by_partition[key]:
            del by_partition[key]
        if not by_partition:
            del self._pending_producers[group_id]
