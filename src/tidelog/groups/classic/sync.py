"""A member asks for its assignment; the leader brings everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.classic.member import Reply
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState


class Sync(NamedTuple):
    """A SyncGroup request."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


def sync(state: GroupsState, group: ClassicGroup, request: Sync, reply: Reply) -> None:
    """Answer at once, or when the leader's assignment is committed."""
    if group.is_empty:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    for said, known in ((request.protocol_type, group.protocol_type), (request.protocol, group.protocol)):
        if said is not None and known is not None and said != known:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is State.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.discard(member.member_id)
    if group.state is State.STABLE:
        rebalance.keep_alive(state, group, member)

        def committed(code: ErrorCode) -> None:
            code = code or _code_by_now(group, request)
            reply(rebalance.synced(group, member) if code is ErrorCode.NONE else SyncGroupResponse(error_code=code))

        # A new coordinator may have read an assignment that is not committed yet, and may be lost with it.
        state.when_committed(committed)
        return
    member.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))  # an earlier one of its own
    member.sync_reply = reply
    rebalance.keep_alive(state, group, member)
    if group.leader_id == member.member_id and group.assigned_generation != group.generation:
        _store(state, group, request.assignments)


def _code_by_now(group: ClassicGroup, request: Sync) -> ErrorCode:
    """Whether a member that had to wait is still one, and its generation not over."""
    try:
        group.check_member(request.member_id, request.instance_id)
    except KafkaError as error:
        return error.code
    is_same = group.state is State.STABLE and group.generation == request.generation
    return ErrorCode.NONE if is_same else ErrorCode.REBALANCE_IN_PROGRESS


def _store(state: GroupsState, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """Nobody works by an assignment before it is committed: the next coordinator must know the same one."""
    generation = group.assigned_generation = group.generation

    def stored(code: ErrorCode) -> None:
        if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:
            return
        if code is ErrorCode.NONE:
            rebalance.propagate(state, group, assignments)
        else:
            rebalance.fail_assignment(state, group, code)

    known = {member_id: assignments.get(member_id, b"") for member_id in group.members}
    try:
        state.save(group, known, stored)
    except KafkaError as error:
        rebalance.fail_assignment(state, group, error.code)
