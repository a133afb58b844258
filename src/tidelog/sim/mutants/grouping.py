"""Bugs of groups and their offsets, found where members sleep, leave and die."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.groups.classic.group import ClassicGroup
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.expiry import MINUTE_MS, Expiry
from tidelog.groups.offsets import CommittedOffset
from tidelog.groups.state import Group, GroupsState
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.mutants.coordination_workloads import restless_groups, sleepy_members


def _generation_not_checked(original: Original, hit: Hit) -> Original:
    def check_commit(self: Any, member_id: str, instance_id: str | None, generation: int, **more: Any) -> Any:
        try:
            return original(self, member_id, instance_id, generation, **more)
        except Exception:
            hit()
            return None

    return check_commit


def _expired_too_early(original: Original, hit: Hit) -> Original:
    def is_over(self: Expiry, group: Group, committed: CommittedOffset) -> bool:
        if original(self, group, committed):
            return True
        since_ms = group.offsets_expire_from(committed.commit_timestamp_ms)
        now_ms = self._state.outbox.now_ms
        second_ms = MINUTE_MS // 60
        if since_ms is None or now_ms - since_ms < self._state.config.offsets_retention_minutes * second_ms:
            return False
        hit()
        return True

    return is_over


def _answered_before_committed(original: Original, hit: Hit) -> Original:
    def write(self: GroupsState, content: Sequence[Any], answer: Any, **batch: Any) -> None:
        def finished(_code: ErrorCode) -> None:
            """Too late: it was answered at once."""

        original(self, content, finished, **batch)
        if content:
            hit()
        answer(ErrorCode.NONE)

    return write


MUTANTS = (
    Mutant(
        "generation-not-checked",
        "a member whose generation is over may commit: offsets go back",
        [
            (ClassicGroup, "check_commit", _generation_not_checked),
            (ConsumerGroup, "check_commit", _generation_not_checked),
        ],
        sleepy_members,
    ),
    Mutant(
        "offsets-expired-too-early",
        "offsets expire after as many seconds as they should minutes",
        [(Expiry, "_is_over", _expired_too_early)],
        sleepy_members,
    ),
    Mutant(
        "commit-answered-early",
        "a commit is answered before other replicas have it",
        [(GroupsState, "write", _answered_before_committed)],
        restless_groups,
    ),
)
