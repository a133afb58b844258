"""Heartbeats, and members that leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState


def heartbeat(
    state: GroupsState, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Keep a member's session; REBALANCE_IN_PROGRESS tells it to join again."""
    member = group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is State.EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    rebalance.keep_alive(state, group, member)
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else ErrorCode.NONE


class Leaving(NamedTuple):
    """One member of a LeaveGroup request; a static one may be named by its instance id alone (KIP-345)."""

    member_id: str
    instance_id: str | None


def leave(state: GroupsState, group: ClassicGroup, leaving: Sequence[Leaving]) -> list[ErrorCode]:
    """Take members out at once; one rebalance for all of them."""
    codes = [_leave_one(group, one) for one in leaving]
    if ErrorCode.NONE in codes and group.state is not State.EMPTY:
        rebalance.group_changed(state, group, "members left")
    return codes


def _leave_one(group: ClassicGroup, leaving: Leaving) -> ErrorCode:
    member_id, instance_id = leaving
    if not member_id:
        known = group.static_members.get(instance_id) if instance_id is not None else None
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        rebalance.dismiss(group, group.members[known])
        return ErrorCode.NONE
    if member_id in group.pending_members:
        group.forget_pending(member_id)
        return ErrorCode.NONE
    try:
        rebalance.dismiss(group, group.check_member(member_id, instance_id))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
