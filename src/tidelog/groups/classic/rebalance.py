"""How a generation of a classic group begins and ends: the join phase, the sync phase, and members that fall silent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.classic.member import Member
from tidelog.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A new member cannot heartbeat while its join is held; who gave up cannot be told from who waits."""
ALL_AWAY_MS = 1_000
"""Between looks at a group of which only static members are left that have not joined, where they ask for less."""


# --- sessions ---


def keep_alive(state: GroupsState, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
    """A sign of life: the session runs from now."""
    now_ms = state.outbox.now_ms
    member.session_deadline_ms = now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    timer = member.session_timer
    if timer is not None and timer.at_ms <= member.session_deadline_ms and timer.callback is not None:
        return  # it looks at the deadline when it fires
    member.stop_session()
    member.session_timer = state.outbox.at(member.session_deadline_ms, partial(_session_due, state, group, member))


def _session_due(state: GroupsState, group: ClassicGroup, member: Member) -> None:
    member.session_timer = None
    if group.members.get(member.member_id) is not member:
        return
    if state.outbox.now_ms < member.session_deadline_ms:
        member.session_timer = state.outbox.at(member.session_deadline_ms, partial(_session_due, state, group, member))
    elif member.is_waiting and not member.is_new:
        # Its request is held here, so it cannot heartbeat: it is looked at again when that was answered.
        keep_alive(state, group, member)
    else:
        remove_member(state, group, member, "its session ended")


def expect_pending(state: GroupsState, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    """An id was handed out: its owner is waited for, for one session."""

    def given_up() -> None:
        group.forget_pending(member_id)
        complete_if_all_joined(state, group)

    group.pending_members[member_id] = state.outbox.after(timeout_ms, given_up)


# --- members go ---


def remove_member(state: GroupsState, group: ClassicGroup, member: Member, reason: str) -> None:
    """A member is gone: the others share what it had."""
    dismiss(group, member)
    group_changed(state, group, reason)


def dismiss(group: ClassicGroup, member: Member) -> None:
    """Take a member out. Whoever still waits in its name may join again as somebody new."""
    member.answer_join(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=""))
    member.answer_sync(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def group_changed(state: GroupsState, group: ClassicGroup, reason: str) -> None:
    """Rebalance for what changed, or see whether the join phase under way is complete by it."""
    if group.state in (State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE):
        prepare(state, group, reason)
    else:
        complete_if_all_joined(state, group)


# --- the join phase ---


def prepare(state: GroupsState, group: ClassicGroup, reason: str) -> None:
    """Ask every member to join again. A new group first waits a little for others to come."""
    if group.state is State.COMPLETING_REBALANCE:
        _forget_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
    stop_waiting_for_syncs(group)
    is_first = group.state is State.EMPTY
    group.move_to(State.PREPARING_REBALANCE, state.outbox.now_ms)
    state.outbox.tell("group-rebalance", "debug", group=group.group_id, generation=group.generation, reason=reason)
    if is_first:
        delay_ms = state.config.group_initial_rebalance_delay_ms
        group.new_member_added = False
        _wait_for_more(state, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.has_all_joined:
        complete_join(state, group)
    else:
        _set_join_timer(state, group)


def _wait_for_more(state: GroupsState, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    def due() -> None:
        group.join_timer = None
        if group.state is not State.PREPARING_REBALANCE:
            return
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            next_ms = min(state.config.group_initial_rebalance_delay_ms, remaining_ms)
            _wait_for_more(state, group, next_ms, max(remaining_ms - delay_ms, 0))
        else:
            complete_join(state, group)

    if group.join_timer is not None:
        group.join_timer.cancel()
    group.join_timer = state.outbox.after(delay_ms, due)


def _set_join_timer(state: GroupsState, group: ClassicGroup, at_least_ms: int = 0) -> None:
    if group.join_timer is not None:
        group.join_timer.cancel()
    timeout_ms = max(group.rebalance_timeout_ms, at_least_ms)
    group.join_timer = state.outbox.after(timeout_ms, lambda: complete_join(state, group))


def complete_if_all_joined(state: GroupsState, group: ClassicGroup) -> None:
    """End the join phase early when nobody is missing; a new group waits out its delay."""
    if group.state is State.PREPARING_REBALANCE and group.has_all_joined:
        if group.previous_state is State.EMPTY and group.members:
            return
        complete_join(state, group)


def complete_join(state: GroupsState, group: ClassicGroup) -> None:
    """The next generation is made of those who joined, and of static members, who are given their session's time."""
    if group.state is not State.PREPARING_REBALANCE:
        return
    if group.join_timer is not None:
        group.join_timer.cancel()
        group.join_timer = None
    for member in [one for one in group.members.values() if one.join_reply is None and one.instance_id is None]:
        group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        _set_join_timer(state, group, ALL_AWAY_MS)  # only static members, all of them away
        return
    now_ms = state.outbox.now_ms
    group.next_generation(now_ms)
    if group.is_empty:
        with suppress(KafkaError):  # an empty generation protects nobody; the one before would end by its sessions
            state.save(group, {}, _ignore)
        return
    for member in list(group.members.values()):
        member.answer_join(joined(group, member))
        member.is_new = False
        keep_alive(state, group, member)
        group.pending_syncs.add(member.member_id)
    _expect_syncs(state, group)


def joined(group: ClassicGroup, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The group as a member of its present generation sees it; the leader sees everybody."""
    is_leader = group.leader_id == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or "",
        member_id=member.member_id,
        skip_assignment=skip_assignment and is_leader,
        members=[
            JoinGroupResponseMember(
                member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata(group.protocol)
            )
            for one in group.members.values()
        ]
        if is_leader
        else [],
    )


# --- the sync phase ---


def _expect_syncs(state: GroupsState, group: ClassicGroup) -> None:
    """Members that joined and never asked for their assignment are taken out after the rebalance timeout."""
    generation = group.generation

    def due() -> None:
        group.sync_timer = None
        if group.generation != generation or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
            return
        if group.pending_syncs:
            for member_id in sorted(group.pending_syncs):
                dismiss(group, group.members[member_id])
            prepare(state, group, "members did not ask for their assignment")

    group.sync_timer = state.outbox.after(group.rebalance_timeout_ms, due)


def stop_waiting_for_syncs(group: ClassicGroup) -> None:
    """The generation whose syncs were waited for is over."""
    group.pending_syncs.clear()
    if group.sync_timer is not None:
        group.sync_timer.cancel()
        group.sync_timer = None


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """What a member was given."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def propagate(state: GroupsState, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
    """The leader's assignment is committed: whoever waits for its part gets it."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    group.move_to(State.STABLE, state.outbox.now_ms)
    for member in list(group.members.values()):
        if member.answer_sync(synced(group, member)):
            keep_alive(state, group, member)


def fail_assignment(state: GroupsState, group: ClassicGroup, code: ErrorCode) -> None:
    """The assignment could not be stored: all begin again."""
    _forget_assignments(group, code)
    group_changed(state, group, f"the assignment could not be stored: {code.name}")


def _forget_assignments(group: ClassicGroup, code: ErrorCode) -> None:
    for member in list(group.members.values()):
        member.assignment = b""
        member.answer_sync(SyncGroupResponse(error_code=code))


# --- coordinators come and go ---


def after_load(state: GroupsState, group: ClassicGroup) -> None:
    """Members have a session's time to find this coordinator; a group over a lowered limit shrinks by rebalancing.

    One that nobody leads was a consumer group, and what its last member of that protocol had is nobody's yet.
    """
    for member in group.members.values():
        keep_alive(state, group, member)
    if len(group.members) > state.config.group_max_size:
        prepare(state, group, "the group is over group.max.size")
    elif group.members and group.leader_id is None:
        prepare(state, group, "the last member of the consumer protocol left")


def turn_away(group: ClassicGroup) -> None:
    """This node no longer looks after the group."""
    for member in list(group.members.values()):
        member.answer_join(JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id))
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def _ignore(code: ErrorCode) -> None:
    """Nobody waits for an empty generation."""
