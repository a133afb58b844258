"""A heartbeat of the consumer protocol: join, say something new, reconcile, leave. Everything goes through it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic.group import ClassicGroup
from tidelog.groups.classic.member import Reply
from tidelog.groups.consumer import records, sessions
from tidelog.groups.consumer.assignors import ASSIGNORS
from tidelog.groups.consumer.epochs import Plan
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH, Assignment, ConsumerMember, MemberState
from tidelog.groups.consumer.pace import next_heartbeat_ms
from tidelog.groups.consumer.reconcile import is_part_of, merged, reconcile
from tidelog.groups.consumer.topic_pattern import TopicPattern
from tidelog.groups.member_ids import new_member_id
from tidelog.wire.messages.consumer_group_heartbeat import (
    Assignment as AssignmentMessage,
)
from tidelog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

OWN_MEMBER_ID_VERSION = 1
"""From here on clients choose their member ids (KIP-1082)."""
MAX_SUBSCRIBED_TOPICS = 100_000


class Beat(NamedTuple):
    """A ConsumerGroupHeartbeat request and where it came from; None is "as before"."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topics: tuple[str, ...] | None
    pattern: str | None
    assignor: str | None
    owned: Assignment | None
    client_id: str
    client_host: str
    api_version: int

    @property
    def is_full(self) -> bool:
        """Whether it says everything: then it is told everything."""
        says_topics = self.topics is not None or self.pattern is not None
        return self.member_epoch == 0 or (self.rebalance_timeout_ms != -1 and says_topics and self.owned is not None)


def heartbeat(state: GroupsState, request: Beat, reply: Reply) -> None:
    """Answer when what it changed is committed. Raises KafkaError, with nothing changed, on a wrong request."""
    check(state, request)
    group = state.groups.get(request.group_id)
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        _leave(state, group, request, reply)
        return
    if isinstance(group, ConsumerGroup):
        member = _nothing_new_from(state, group, request)
        if member is not None:
            _stay(state, group, member, request, reply)
            return
        plan = Plan(state, group)
    elif request.member_epoch != 0:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    else:
        plan = _new_group(state, group, request.group_id)
    _beat(state, plan, request, reply)


def _new_group(state: GroupsState, group: ClassicGroup | None, group_id: str) -> Plan:
    """A group that was not there, or that was a classic one until now."""
    if group is None:
        return Plan(state, ConsumerGroup(group_id))
    from tidelog.groups.consumer.upgrade import upgrade

    return upgrade(state, group)


def check(state: GroupsState, request: Beat) -> None:
    """Whether a request makes sense by itself."""
    if "consumer" not in state.config.group_coordinator_rebalance_protocols:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The consumer protocol is not enabled here.")
    for text, name in (
        (request.group_id, "GroupId"),
        (request.instance_id, "InstanceId"),
        (request.rack_id, "RackId"),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if not request.member_id and (request.member_epoch != 0 or request.api_version >= OWN_MEMBER_ID_VERSION):
        raise _invalid("MemberId can't be empty.")
    if request.member_epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.member_epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if request.member_epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if not request.topics and not request.pattern:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be set when (re-)joining.")
    if len(request.topics or ()) > MAX_SUBSCRIBED_TOPICS:
        raise _invalid(f"More than {MAX_SUBSCRIBED_TOPICS} topics.")
    known = state.config.group_consumer_assignors
    if request.assignor is not None and (request.assignor not in known or request.assignor not in ASSIGNORS):
        supported = ", ".join(known)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {supported}.",
        )
    if request.pattern:
        TopicPattern(request.pattern)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


# --- who it is ---


def _find_or_admit(state: GroupsState, plan: Plan, request: Beat) -> tuple[ConsumerMember, bool]:
    """The member a request speaks for as it was before, and whether it is new to the group."""
    member_id = request.member_id or new_member_id(state.outbox.chance, "").removeprefix("-")
    is_joining = request.member_epoch == 0
    known = plan.members.get(member_id)
    if request.instance_id is not None:
        existing_id = plan.group.static_members.get(request.instance_id)
        if existing_id is None and not is_joining:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if existing_id is not None and existing_id != member_id:
            if not is_joining:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {request.instance_id} was fenced by {existing_id}.",
                )
            return _replace_static(plan, existing_id, member_id, request.instance_id), False
    if known is None:
        if not is_joining:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of the group.")
        if len(plan.members) >= state.config.group_consumer_max_size:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, "The consumer group has reached its maximum capacity.")
        return ConsumerMember(member_id), True
    if is_joining:
        # It says that it has nothing: it begins again, and what it had is free.
        return replace(known, epoch=0, state=MemberState.STABLE, assigned={}, revoking={}), False
    _check_epoch(known, request)
    return known, False


def _replace_static(plan: Plan, old_id: str, member_id: str, instance_id: str) -> ConsumerMember:
    old = plan.members[old_id]
    if old.classic is None and old.epoch != LEAVE_STATIC_EPOCH:  # the classic protocol cannot say that it is away
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join: {old_id} has it.",
        )
    member = replace(
        old, member_id=member_id, epoch=0, previous_epoch=0, state=MemberState.STABLE, assigned={}, revoking={}
    )
    plan.hand_over(old_id, member)
    return member


def _check_epoch(member: ConsumerMember, request: Beat) -> None:
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    # The answer that raised its epoch may have been lost: then it has nothing that is not its own.
    is_lost_answer = epoch == member.previous_epoch and epoch < member.epoch and request.owned is not None
    if is_lost_answer and is_part_of(request.owned or {}, member.assigned):
        return
    size = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator"
        f" ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


# --- what it says, and what it is told ---


def _nothing_new_from(state: GroupsState, group: ConsumerGroup, request: Beat) -> ConsumerMember | None:
    """The member, where it has what it is to have and its request says nothing new: as nearly every heartbeat does."""
    member = group.members.get(request.member_id)
    if (
        member is None
        or member.classic is not None
        or member.state is not MemberState.STABLE
        or not request.member_epoch == member.epoch == group.assignment_epoch == group.epoch
        or group.checked_topics_version != state.topics.version
        or request.topics is not None
        or request.pattern is not None
        or request.assignor is not None
        or request.rack_id not in (None, member.rack_id)
        or request.instance_id != member.instance_id
        or request.rebalance_timeout_ms not in (-1, member.rebalance_timeout_ms)
        or (request.client_id, request.client_host) != (member.client_id, member.client_host)
    ):
        return None
    return member


def _stay(state: GroupsState, group: ConsumerGroup, member: ConsumerMember, request: Beat, reply: Reply) -> None:
    """A sign of life and no more."""
    state.when_committed(
        lambda code: _answer(state, member, code or by_now(state, request.group_id, member), request, reply)
    )
    sessions.keep_alive(state, group, member)


def _updated(member: ConsumerMember, request: Beat) -> ConsumerMember:
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        topics=member.topics if request.topics is None else tuple(sorted(set(request.topics))),
        pattern=member.pattern if request.pattern is None else request.pattern or None,
        server_assignor=member.server_assignor if request.assignor is None else request.assignor,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _beat(state: GroupsState, plan: Plan, request: Beat, reply: Reply) -> None:
    member, is_new = _find_or_admit(state, plan, request)
    updated = _updated(member, request)
    plan.put(updated)
    subscription_changed = is_new or (member.topics, member.pattern) != (updated.topics, updated.pattern)
    if subscription_changed or plan.group.checked_topics_version != state.topics.version:
        plan.look_at_topics(raise_epoch=subscription_changed)
    settle(state, plan, updated, request.owned, lambda moved: _answer(state, member, moved, request, reply))


def settle(state: GroupsState, plan: Plan, member: ConsumerMember, owned: Assignment | None, answered: Reply) -> None:
    """Make the target where it is due, take the member a step towards it, and write all that."""
    group_id = plan.group.group_id
    waits_for_target = plan.epoch > plan.assignment_epoch and plan.assignment_is_due_ms > state.outbox.now_ms
    if plan.epoch > plan.assignment_epoch and not waits_for_target:
        plan.assign()
    before = plan.group.members.get(member.member_id)
    moved = reconcile(
        member,
        plan.assignment_epoch,
        plan.target.get(member.member_id, {}),
        owned,
        partial(plan.is_owned, member),
    )
    if before is None or not before.same_progress(moved):
        plan.content.append(records.progress(group_id, moved))

    def committed(code: ErrorCode) -> None:
        answered(code or by_now(state, group_id, moved))

    state.write(plan.content, committed)
    group = state.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    group.checked_topics_version = state.topics.version
    sessions.keep_alive(state, group, moved)
    sessions.watch_revocation(state, group, moved)
    if waits_for_target:
        sessions.assign_later(state, group, plan.assignment_is_due_ms)


def by_now(state: GroupsState, group_id: str, member: ConsumerMember) -> ConsumerMember | ErrorCode:
    """A member whose answer had to wait, if all that it is about to be told is still its own.

    It may have been taken out meanwhile, for its silence or by an operator, and another given what it had.
    """
    group = state.groups.get(group_id)
    is_classic = member.classic is not None
    now = group.members.get(member.member_id) if isinstance(group, ConsumerGroup) else None
    if now is None:
        is_moved_over = is_classic and isinstance(group, ClassicGroup) and member.member_id in group.members
        return ErrorCode.REBALANCE_IN_PROGRESS if is_moved_over else ErrorCode.UNKNOWN_MEMBER_ID
    if is_part_of(member.assigned, merged(now.assigned, now.revoking)):
        return member
    return ErrorCode.REBALANCE_IN_PROGRESS if is_classic else ErrorCode.FENCED_MEMBER_EPOCH


def _answer(
    state: GroupsState, before: ConsumerMember, after: ConsumerMember | ErrorCode, request: Beat, reply: Reply
) -> None:
    if isinstance(after, ErrorCode):
        reply(ConsumerGroupHeartbeatResponse(error_code=after))
        return
    response = ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=next_heartbeat_ms(state, request.group_id, after),
    )
    if request.is_full or before.assigned != after.assigned:
        response.assignment = AssignmentMessage(
            topic_partitions=[
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(after.assigned.items())
            ]
        )
    reply(response)


# --- going ---


def _leave(state: GroupsState, group: ConsumerGroup, request: Beat, reply: Reply) -> None:
    member_id = request.member_id
    if request.instance_id is not None:
        known = group.static_members.get(request.instance_id)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if known != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
    member = group.member(member_id)

    def left(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            reply(ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch))
        else:
            reply(ConsumerGroupHeartbeatResponse(error_code=code))

    if request.member_epoch == LEAVE_STATIC_EPOCH:
        away = replace(member, epoch=LEAVE_STATIC_EPOCH, revoking={})
        state.write([records.progress(group.group_id, away)], left)
    else:
        sessions.remove(state, group, [member_id], left)
