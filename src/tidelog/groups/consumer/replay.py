"""Applies the records of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidelog.errors import DecodeError
from tidelog.groups.consumer.group import ConsumerGroup, ResolvedPattern
from tidelog.groups.consumer.member import LEAVE_EPOCH, Assignment, ClassicInfo, ConsumerMember, MemberState
from tidelog.wire.records.consumer_group_current_member_assignment import ConsumerGroupCurrentMemberAssignmentKey
from tidelog.wire.records.consumer_group_member_metadata import ConsumerGroupMemberMetadataKey
from tidelog.wire.records.consumer_group_metadata import ConsumerGroupMetadataKey
from tidelog.wire.records.consumer_group_regular_expression import ConsumerGroupRegularExpressionKey
from tidelog.wire.records.consumer_group_target_assignment_member import ConsumerGroupTargetAssignmentMemberKey
from tidelog.wire.records.consumer_group_target_assignment_metadata import ConsumerGroupTargetAssignmentMetadataKey

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState


def replay(state: GroupsState, key: Any, value: Any) -> None:
    """Apply one record; those of other kinds are passed over."""
    apply = _APPLY.get(type(key))
    if apply is None:
        return
    group = state.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return  # a tombstone of what compaction has removed already, or of a group that is a classic one by now
        if group is not None:
            group.end(state.outbox.now_ms)
        group = ConsumerGroup(key.group_id)
        state.groups[key.group_id] = group
    apply(state, group, key, value)


def _group(state: GroupsState, group: ConsumerGroup, _key: Any, value: Any) -> None:
    if value is None:
        group.stop_timers()
        del state.groups[group.group_id]
    else:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _target_epoch(_state: GroupsState, group: ConsumerGroup, _key: Any, value: Any) -> None:
    group.assignment_epoch = 0 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _target(_state: GroupsState, group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = _assignment(value.topic_partitions)


def _member(_state: GroupsState, group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    classic = value.classic_member_metadata
    known = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put(
        replace(
            known,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topics=tuple(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex or None,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicInfo(
                classic.session_timeout_ms,
                tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols),
            ),
        )
    )


def _state_of(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        raise DecodeError(f"members have no state {number}") from None


def _progress(_state: GroupsState, group: ConsumerGroup, key: Any, value: Any) -> None:
    known = group.members.get(key.member_id)
    if value is None:
        if known is not None:
            group.put(replace(known, epoch=LEAVE_EPOCH, assigned={}, revoking={}))
        return
    group.put(
        replace(
            known or ConsumerMember(key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_state_of(value.state),
            assigned=_assignment(value.assigned_partitions),
            revoking=_assignment(value.partitions_pending_revocation),
        )
    )


def _pattern(_state: GroupsState, group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.patterns.pop(key.regular_expression, None)
    else:
        group.patterns[key.regular_expression] = ResolvedPattern(
            frozenset(value.topics), value.version, value.timestamp
        )


def _assignment(rows: Iterable[Any]) -> Assignment:
    return {row.topic_id: frozenset(row.partitions) for row in rows if row.partitions}


_APPLY: dict[type, Any] = {
    ConsumerGroupMetadataKey: _group,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupCurrentMemberAssignmentKey: _progress,
    ConsumerGroupRegularExpressionKey: _pattern,
}
