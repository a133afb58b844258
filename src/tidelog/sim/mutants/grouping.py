"""Bugs of groups and their offsets, found where members sleep, leave and die."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.groups import commits
from tidelog.groups.classic import rebalance, sync
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.classic.member import Member
from tidelog.groups.consumer.epochs import Plan
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


def _told_before_committed(original: Original, hit: Hit) -> Original:
    def store(state: GroupsState, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        original(state, group, assignments)
        if group.state is State.COMPLETING_REBALANCE:
            hit()
            rebalance.propagate(state, group, assignments)

    return store


def _given_before_given_up(original: Original, hit: Hit) -> Original:
    def is_owned(self: Plan, *partition: Any) -> bool:
        if original(self, *partition):
            hit()
        return False

    return is_owned


def _place_not_kept(original: Original, hit: Hit) -> Original:
    def replace_static(self: ClassicGroup, instance_id: str, member_id: str) -> Member:
        member: Member = original(self, instance_id, member_id)
        if member.assignment:
            hit()
            member.assignment = b""
        return member

    return replace_static


def _offsets_left_behind(original: Original, hit: Hit) -> Original:
    def tombstones_of(state: GroupsState, group_id: str) -> list[Any]:
        if original(state, group_id):
            hit()
        return []

    return tombstones_of


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
    Mutant(
        "assignment-told-early",
        "members are told their share before it is committed: another coordinator has the generation anew",
        [(sync, "_store", _told_before_committed)],
        restless_groups,
    ),
    Mutant(
        "given-before-given-up",
        "a partition is given to a member while another still has it (against KIP-848)",
        [(Plan, "is_owned", _given_before_given_up)],
        sleepy_members,
    ),
    Mutant(
        "static-place-not-kept",
        "a static member that comes back finds its place, and nothing in it (against KIP-345)",
        [(ClassicGroup, "replace_static", _place_not_kept)],
        sleepy_members,
    ),
    Mutant(
        "deleted-offsets-left-behind",
        "a group is deleted without its offsets",
        [(commits, "tombstones_of", _offsets_left_behind)],
        sleepy_members,
    ),
)
