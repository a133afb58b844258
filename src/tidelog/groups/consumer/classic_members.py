"""Members of the classic protocol in a group of the consumer protocol: join, sync, heartbeat and leave answer as a
classic group would, and mean steps of reconciliation (KIP-848, online migration).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.groups.classic.join import MEMBER_ID_REQUIRED_VERSION, Join
from tidelog.groups.classic.liveness import Leaving
from tidelog.groups.classic.member import Reply
from tidelog.groups.classic.sync import Sync
from tidelog.groups.consumer import embedded, sessions
from tidelog.groups.consumer.epochs import Plan
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.heartbeat import by_now, settle
from tidelog.groups.consumer.member import ClassicInfo, ConsumerMember, MemberState
from tidelog.groups.member_ids import new_member_id
from tidelog.wire.messages.join_group import JoinGroupResponse
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState


# --- join ---


def join(state: GroupsState, group: ConsumerGroup, request: Join, reply: Reply) -> None:
    """A step of reconciliation; answered when it is committed, without waiting for anybody else."""
    subscription = _read(group, request)
    member_id = request.member_id
    if not member_id:
        member_id = new_member_id(state.outbox.chance, request.instance_id or request.client_id)
        if request.instance_id is None and request.api_version >= MEMBER_ID_REQUIRED_VERSION:
            reply(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
            return
    plan = Plan(state, group)
    before, is_new = _find_or_admit(state, plan, member_id, request)
    member = replace(
        before,
        instance_id=request.instance_id,
        rack_id=subscription.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        pattern=None,
        classic=ClassicInfo(request.session_timeout_ms, request.protocols),
    )
    plan.put(member)
    changed = is_new or before.topics != member.topics or before.pattern is not None
    if changed or group.checked_topics_version != state.topics.version:
        plan.look_at_topics(raise_epoch=changed)

    def committed(after: ConsumerMember | ErrorCode) -> None:
        if isinstance(after, ErrorCode):
            reply(JoinGroupResponse(error_code=after, member_id=member_id))
            return
        _expect(state, group, after, "it did not ask for its assignment")
        reply(
            JoinGroupResponse(
                generation_id=after.epoch,
                protocol_type=group.protocol_type,
                protocol_name=_protocol_of(group, after),
                member_id=member_id,
            )
        )

    expected = group.syncing.pop(member_id, None)  # it has come, though that is not committed yet
    try:
        settle(state, plan, member, embedded.by_id(subscription.owned, state.topics), committed)
    except KafkaError:
        if expected is not None:
            group.syncing[member_id] = expected
        raise
    if expected is not None:
        expected.cancel()


def _read(group: ConsumerGroup, request: Join) -> embedded.Subscription:
    others = [
        {name for name, _ in member.classic.protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    common = set.intersection({name for name, _ in request.protocols}, *others)
    if request.protocol_type != group.protocol_type or not common:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return embedded.read_subscription(next(data for name, data in request.protocols if name in common))
    except DecodeError:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None


def _protocol_of(group: ConsumerGroup, member: ConsumerMember) -> str:
    """The first of a member's protocols that all members of its kind have."""
    others = [{name for name, _ in one.classic.protocols} for one in group.members.values() if one.classic is not None]
    protocols = member.classic.protocols if member.classic is not None else ()
    return next((name for name, _ in protocols if all(name in other for other in others)), "")


def _find_or_admit(state: GroupsState, plan: Plan, member_id: str, request: Join) -> tuple[ConsumerMember, bool]:
    if request.instance_id is not None:
        known_id = plan.group.static_members.get(request.instance_id)
        if known_id is not None and known_id != member_id:
            if request.member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            member = replace(
                plan.members[known_id],
                member_id=member_id,
                epoch=0,
                previous_epoch=0,
                state=MemberState.STABLE,
                assigned={},
                revoking={},
            )
            plan.hand_over(known_id, member)
            return member, False
        if known_id is None and request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    known = plan.members.get(member_id)
    if known is not None:
        return known, False
    if len(plan.members) >= state.config.group_consumer_max_size:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    return ConsumerMember(member_id), True


def _expect(state: GroupsState, group: ConsumerGroup, member: ConsumerMember, otherwise: str) -> None:
    """Of a member something is expected within its rebalance timeout; otherwise it is taken out."""
    member_id = member.member_id

    def due() -> None:
        group.syncing.pop(member_id, None)
        if state.groups.get(group.group_id) is group and member_id in group.members:
            sessions.expire(state, group, member_id, otherwise, lambda: None)

    _stop_expecting(group, member_id)
    group.syncing[member_id] = state.outbox.after(member.rebalance_timeout_ms, due)


def _stop_expecting(group: ConsumerGroup, member_id: str) -> None:
    timer = group.syncing.pop(member_id, None)
    if timer is not None:
        timer.cancel()


# --- sync, heartbeat, leave ---


def sync(state: GroupsState, group: ConsumerGroup, request: Sync, reply: Reply) -> None:
    """What the member may read now; REBALANCE_IN_PROGRESS where it has to join again first."""
    member = _check(group, request.member_id, request.instance_id, request.generation)
    protocol = _protocol_of(group, member)
    if (request.protocol_type or group.protocol_type) != group.protocol_type or (
        request.protocol or protocol
    ) != protocol:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member.epoch < group.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    assert member.classic is not None
    _stop_expecting(group, member.member_id)
    sessions.keep_alive(state, group, member)
    version = embedded.assignment_version(member.classic.protocols)
    response = SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=protocol,
        assignment=embedded.write_assignment(member.assigned, state.topics, version),
    )

    def committed(code: ErrorCode) -> None:
        now = code or by_now(state, group.group_id, member)
        reply(SyncGroupResponse(error_code=now) if isinstance(now, ErrorCode) else response)

    state.when_committed(committed)


def heartbeat(
    state: GroupsState, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Keep a member's session; it joins again to take its next step."""
    member = _check(group, member_id, instance_id, generation)
    sessions.keep_alive(state, group, member)
    if not _must_join_again(group, member):
        return ErrorCode.NONE
    if member_id not in group.syncing:
        _expect(state, group, member, "it did not join again")
    return ErrorCode.REBALANCE_IN_PROGRESS


def _check(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    member = group.check_instance(member_id, instance_id)
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _must_join_again(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """The group went on, something is to be given up, or what it waits for is free now."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    return not any(
        (topic_id, partition) in group.owners and group.owners[topic_id, partition] != member.member_id
        for topic_id, partitions in group.target_of(member.member_id).items()
        for partition in partitions
    )


def leave(
    state: GroupsState, group: ConsumerGroup, leaving: Sequence[Leaving], left: Callable[[list[ErrorCode]], None]
) -> None:
    """Members go, by their ids or by their instance ids."""
    codes: list[ErrorCode] = []
    gone: list[str] = []
    for member_id, instance_id in leaving:
        try:
            if not member_id:
                known = group.static_members.get(instance_id) if instance_id is not None else None
                if known is None:
                    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
                gone.append(known)
            else:
                gone.append(group.check_instance(member_id, instance_id).member_id)
            codes.append(ErrorCode.NONE)
        except KafkaError as error:
            codes.append(error.code)
    if not gone:
        left(codes)
        return
    sessions.remove(state, group, list(dict.fromkeys(gone)), lambda code: left([own or code for own in codes]))
