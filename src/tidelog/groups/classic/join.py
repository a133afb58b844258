"""A member joins, or joins again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups import records
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.classic.member import Member, Protocols, Reply
from tidelog.groups.member_ids import new_member_id
from tidelog.wire.messages.join_group import JoinGroupResponse
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.groups.consumer.group import ConsumerGroup
    from tidelog.groups.state import GroupsState

MEMBER_ID_REQUIRED_VERSION = 4
"""From here on a new member is first given its id (KIP-394), so that a client that gave up leaves no member behind."""
SKIP_ASSIGNMENT_VERSION = 9
"""From here on a leader can be told that nothing is to be assigned (KIP-814)."""
MAX_PENDING_MEMBERS = 10_000
"""Ids of one group that were handed out and are waited for."""


class Join(NamedTuple):
    """A JoinGroup request and where it came from."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    api_version: int


def join(state: GroupsState, request: Join, reply: Reply) -> None:
    """Answer at once, or when the join phase is over. Raises KafkaError, with nothing changed, on a wrong request."""
    config = state.config
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
    group = state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup | None):
        group = _after_consumer_group(state, group, request, reply)
        if group is None:
            return
    if group is None:
        if request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not request.protocol_type or not request.protocols:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group = _create(state, request.group_id)
    _check_room(state, group, request.member_id)
    if not group.supports(request.protocol_type, (name for name, _ in request.protocols)):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.member_id:
        _join_new(state, group, request, reply)
    elif request.member_id in group.pending_members:
        if request.instance_id is not None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "ids are handed out to members that are not static")
        _add(state, group, request, request.member_id, reply)
    else:
        member = group.check_member(request.member_id, request.instance_id)
        _join_again(state, group, member, request, reply)


def _after_consumer_group(state: GroupsState, group: ConsumerGroup, request: Join, reply: Reply) -> ClassicGroup | None:
    """An empty group of the other protocol gives way; one with members takes the new one in, and answers."""
    from tidelog.groups.consumer import classic_members

    if not group.is_empty:
        classic_members.join(state, group, request, reply)
        return None
    if request.member_id:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not request.protocol_type or not request.protocols:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    made = ClassicGroup(request.group_id, state.outbox.now_ms)
    content = [*group.tombstones(), records.group_metadata(request.group_id, made.to_value({}))]
    state.write(content, lambda _code: None)
    state.groups[request.group_id] = made
    return made


def _create(state: GroupsState, group_id: str) -> ClassicGroup:
    """A group is in the log from the start, so that another coordinator knows the ids handed out are not its own."""
    group = state.create_classic(group_id)
    try:
        state.save(group, {}, lambda _code: None)
    except KafkaError:
        del state.groups[group_id]
        raise
    return group


def _check_room(state: GroupsState, group: ClassicGroup, member_id: str) -> None:
    limit = state.config.group_max_size
    member = group.members.get(member_id)
    if group.state is State.PREPARING_REBALANCE:
        # Those who already wait are counted: when the limit was lowered, whoever joins again last has to go.
        waiting = sum(one.join_reply is not None for one in group.members.values())
        has_room = (member is not None and member.join_reply is not None) or waiting < limit
    elif group.state is State.EMPTY:
        has_room = True
    else:
        has_room = member is not None or len(group.members) < limit
    if has_room and not (not member_id and len(group.pending_members) >= MAX_PENDING_MEMBERS):
        return
    if member is not None:
        rebalance.dismiss(group, member)
    group.forget_pending(member_id)
    raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)


def _join_new(state: GroupsState, group: ClassicGroup, request: Join, reply: Reply) -> None:
    member_id = new_member_id(state.outbox.chance, request.instance_id or request.client_id)
    if request.instance_id is not None:
        if request.instance_id in group.static_members:
            _return_static(state, group, request, member_id, reply)
        else:
            _add(state, group, request, member_id, reply)
    elif request.api_version >= MEMBER_ID_REQUIRED_VERSION:
        rebalance.expect_pending(state, group, member_id, request.session_timeout_ms)
        reply(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
    else:
        _add(state, group, request, member_id, reply)


def _add(state: GroupsState, group: ClassicGroup, request: Join, member_id: str, reply: Reply) -> None:
    member = Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocols,
    )
    member.is_new = True
    member.join_reply = reply
    if group.is_empty:
        group.protocol_type = request.protocol_type
    group.add(member)
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        group.new_member_added = True
    rebalance.keep_alive(state, group, member, rebalance.NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.group_changed(state, group, f"{member_id} joined")


def _join_again(state: GroupsState, group: ClassicGroup, member: Member, request: Join, reply: Reply) -> None:
    says_the_same = member.protocols == request.protocols
    is_leader = group.leader_id == member.member_id
    if (group.state is State.COMPLETING_REBALANCE and says_the_same) or (
        group.state is State.STABLE and says_the_same and not is_leader
    ):
        reply(rebalance.joined(group, member))  # its answer was lost: the generation is still this one
        return
    _update(member, request, reply)
    rebalance.keep_alive(state, group, member)
    rebalance.group_changed(state, group, f"{member.member_id} joined again")


def _update(member: Member, request: Join, reply: Reply) -> None:
    """What the member says now. An earlier join of the same member waits no longer: nobody reads its answer."""
    member.answer_join(JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))
    member.protocols = request.protocols
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    member.client_id, member.client_host = request.client_id, request.client_host
    member.join_reply = reply


def _return_static(state: GroupsState, group: ClassicGroup, request: Join, member_id: str, reply: Reply) -> None:
    """A static member came back under a new id. In a stable group, saying what it said before, it gets its
    assignment back without a rebalance (KIP-345); whoever had the old id is fenced.
    """
    instance_id = request.instance_id or ""
    old_id = group.static_members[instance_id]
    member = group.members[old_id]
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    old_leader = group.leader_id
    fenced = ErrorCode.FENCED_INSTANCE_ID
    member.answer_join(JoinGroupResponse(error_code=fenced, member_id=old_id))
    member.answer_sync(SyncGroupResponse(error_code=fenced))
    group.replace_static(instance_id, member_id)
    _update(member, request, reply)
    rebalance.keep_alive(state, group, member)
    if group.state is not State.STABLE:
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may already assign to the old id.
            rebalance.prepare(state, group, f"static member {instance_id} came back")
        else:
            rebalance.complete_if_all_joined(state, group)
        return
    if group.select_protocol() != group.protocol:
        rebalance.group_changed(state, group, f"static member {instance_id} came back with another protocol")
        return

    def stored(code: ErrorCode) -> None:
        if member.join_reply is not reply:
            return  # a rebalance answered it already
        if code is not ErrorCode.NONE:
            member.answer_join(JoinGroupResponse(error_code=code, member_id=""))
            return
        if request.api_version >= SKIP_ASSIGNMENT_VERSION:
            member.answer_join(rebalance.joined(group, member, skip_assignment=True))
        else:
            # An older client that reads itself as the leader would assign again; it is told of the leader before.
            response = rebalance.joined(group, member)
            response.leader, response.members = old_leader or "", []
            member.answer_join(response)

    try:
        state.save(group, group.assignments(), stored)
    except KafkaError as error:
        # Where the disk failed, it was turned away with all others already.
        member.answer_join(JoinGroupResponse(error_code=error.code, member_id=""))
        member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
        group.replace_static(instance_id, old_id)
        rebalance.keep_alive(state, group, member)
