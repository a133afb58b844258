"""Committed offsets as a client of a simulated cluster sees them, and what it notes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.reading import PartitionReader
from tidelog.sim.scripted import GROUP, Script
from tidelog.sim.work_shape import LEDGER
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

IsCoordinator = Callable[[int, str], bool]
"""Whether a node is, as the newest metadata have it, the coordinator of a group."""


class GroupNotes:
    """What clients of one group were told, all together."""

    def __init__(self, name: str, *, has_true_clocks: bool = True) -> None:
        self.name = name
        self.has_true_clocks = has_true_clocks
        """Where a coordinator's clock is set, sessions end when they should not."""
        self.owners: dict[tuple[int, int], str] = {}
        """Who has a partition of the ledger in a generation, or member epoch."""
        self.two_owners: list[str] = []
        self._held: dict[int, dict[str, int]] = {}
        """By partition: who reads it, and until when nobody else can have it. A member is taken out when it is silent
        for its session, or has not given up or joined again what it was told to within its rebalance timeout.
        """
        self.misplaced: list[str] = []
        """Static members that came back and did not find their place as they had left it."""
        self.acknowledged: dict[int, int] = {}
        """By partition: the highest offset whose commit was answered well."""
        self.lost: list[str] = []
        """Offsets that were told, though later ones had been committed before they were asked for."""
        self.consumed: dict[int, set[int]] = {}
        """By partition: the offsets that somebody read before they were committed."""
        self.read_to: dict[int, int] = {}

    def owns(self, generation: int, index: int, who: str) -> None:
        """A member was told that a partition is its own."""
        known = self.owners.setdefault((generation, index), who)
        if known != who:
            self.two_owners.append(
                f"{LEDGER}-{index} belongs to {known} and to {who} in generation {generation} of {self.name}"
            )

    def takes(self, index: int, who: str, now_ms: int) -> None:
        """A member begins to read a partition: nobody else may still have it."""
        for other, until_ms in self._held.get(index, {}).items():
            if other != who and now_ms < until_ms and self.has_true_clocks:
                self.two_owners.append(
                    f"{LEDGER}-{index} was given to {who} of {self.name} at {now_ms}, while {other} reads it"
                    f" and was heard of less than a session before"
                )

    def holds(self, index: int, who: str, until_ms: int) -> None:
        """A member that reads a partition was heard of."""
        self._held.setdefault(index, {})[who] = until_ms

    def gives_up(self, index: int, who: str) -> None:
        """A member reads a partition no more."""
        self._held.get(index, {}).pop(who, None)


class Committer(PartitionReader):
    """Whoever commits and asks for offsets of the ledger."""

    def __init__(
        self, world: World, name: str, brokers: Sequence[int], draw: int, is_coordinator: IsCoordinator
    ) -> None:
        super().__init__(world, name, brokers, draw)
        self._is_coordinator = is_coordinator

    def committing(
        self,
        notes: GroupNotes,
        index: int,
        offset: int,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        tries: int = 20,
    ) -> Script:
        """Commit an offset; what that was answered with."""
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=notes.name,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name=LEDGER, partitions=[partition])],
        )
        code, _ = yield from self.asking_coordinator(
            GROUP,
            notes.name,
            ApiKey.OFFSET_COMMIT,
            9,
            request,
            lambda one: int(one.topics[0].partitions[0].error_code),
            tries=tries,
        )
        if code is ErrorCode.NONE:
            notes.acknowledged[index] = max(offset, notes.acknowledged.get(index, -1))
        return code

    def finding(
        self,
        notes: GroupNotes,
        index: int,
        generation: int = -1,
        member_id: str | None = None,
        *,
        is_stable: bool = True,
    ) -> Script:
        """The committed offset, -1 for none; None when nobody could tell.

        What a coordinator says that another has replaced is not counted: nothing in Kafka tells it from the truth.
        """
        wanted = OffsetFetchRequestTopics(name=LEDGER, partition_indexes=[index])
        group = OffsetFetchRequestGroup(
            group_id=notes.name, topics=[wanted], member_id=member_id, member_epoch=generation
        )
        least = notes.acknowledged.get(index, -1)

        def code_of(answer: Any) -> int:
            group = answer.groups[0]
            code = int(group.error_code or group.topics[0].partitions[0].error_code)
            node_id = self._coordinators.get((GROUP, notes.name), -1)
            if code == ErrorCode.NONE and not self._is_coordinator(node_id, notes.name):
                return ErrorCode.NOT_COORDINATOR
            return code

        request = OffsetFetchRequest(groups=[group], require_stable=is_stable)
        code, answer = yield from self.asking_coordinator(
            GROUP, notes.name, ApiKey.OFFSET_FETCH, 9, request, code_of, tries=30
        )
        if code is not ErrorCode.NONE:
            return None
        offset = answer.groups[0].topics[0].partitions[0].committed_offset
        if offset < least:
            notes.lost.append(f"{notes.name} has {offset} for {LEDGER}-{index}, after {least} was committed")
        return offset


class IdleCommitter(Committer):
    """Commits one offset for a group of its own and never comes back."""

    def __init__(
        self, world: World, name: str, brokers: Sequence[int], draw: int, is_coordinator: IsCoordinator
    ) -> None:
        super().__init__(world, name, brokers, draw, is_coordinator)
        self.notes = GroupNotes("idle")
        self.play(self._life())

    def _life(self) -> Script:
        yield from self.sleeping(500 + self.chance.below(6_000))
        yield from self.committing(self.notes, 0, 1 + self.chance.below(1_000), tries=1_000_000)
