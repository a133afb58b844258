"""Offsets that are meant to go, in a simulated cluster: somebody deletes a group, and lets another's offset expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.committing import Committer, GroupNotes, IsCoordinator
from tidelog.sim.scripted import GROUP, Script
from tidelog.sim.work_shape import LEDGER
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_groups import DeleteGroupsRequest
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

DELETED, BRIEF = "deleted", "brief"
"""Groups: one that is deleted again and again, and one whose only offset is kept for a moment."""
KEPT_MS = 2_000
RETENTION_VERSION = 4
"""The last version in which whoever commits says for how long (before KIP-211)."""


class Forgetful(Committer):
    """Commits for a group, deletes it and looks whether that is so; and leaves an offset behind that expires."""

    def __init__(
        self, world: World, name: str, brokers: Sequence[int], draw: int, is_coordinator: IsCoordinator
    ) -> None:
        super().__init__(world, name, brokers, draw, is_coordinator)
        self.is_ending = False
        self.has_left = False
        """Whether the offset that is to expire was committed."""
        self.returned: list[str] = []
        """Offsets of a group that had been deleted."""
        self.play(self._life())

    def _life(self) -> Script:
        yield from self.sleeping(500 + self.chance.below(3_000))
        yield from self._leaving_an_offset()
        number = 0
        while not self.is_ending:
            number += 1
            yield from self._deleting(number)
            yield from self.sleeping(1_000 + self.chance.below(2_000))

    def _leaving_an_offset(self) -> Script:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = OffsetCommitRequest(
            group_id=BRIEF,
            retention_time_ms=KEPT_MS,
            topics=[OffsetCommitRequestTopic(name=LEDGER, partitions=[partition])],
        )

        def code_of(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        code, _ = yield from self.asking_coordinator(
            GROUP, BRIEF, ApiKey.OFFSET_COMMIT, RETENTION_VERSION, request, code_of
        )
        self.has_left = code is ErrorCode.NONE

    def _deleting(self, number: int) -> Script:
        """Only what was answered for certain counts."""
        notes = GroupNotes(DELETED)
        code = yield from self.committing(notes, 0, number, tries=1_000)
        if code is not ErrorCode.NONE:
            return
        code, _ = yield from self.asking_coordinator(
            GROUP,
            DELETED,
            ApiKey.DELETE_GROUPS,
            2,
            DeleteGroupsRequest(groups_names=[DELETED]),
            lambda one: int(one.results[0].error_code),
        )
        if code is not ErrorCode.NONE:
            return
        yield from self.sleeping(self.chance.below(2_000))
        offset = yield from self.finding(GroupNotes(DELETED), 0)
        if offset is not None and offset >= 0:
            self.returned.append(f"{DELETED} has offset {offset} again, after it was deleted with {number}")
