"""The records of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.coordination.shard import KeyAndValue
from tidelog.groups.consumer.member import Assignment, ClassicInfo, ConsumerMember
from tidelog.groups.records import record
from tidelog.wire.records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from tidelog.wire.records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from tidelog.wire.records.consumer_group_metadata import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from tidelog.wire.records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from tidelog.wire.records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from tidelog.wire.records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> KeyAndValue:
    """The group's epoch and the topics it saw."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return record(ConsumerGroupMetadataKey(group_id=group_id), value)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> KeyAndValue:
    """The target assignment is that of this epoch."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target(group_id: str, member_id: str, assignment: Assignment | None) -> KeyAndValue:
    """What a member is to have."""
    value = None
    if assignment is not None:
        value = ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(assignment.items())
            ]
        )
    return record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def member(group_id: str, one: ConsumerMember) -> KeyAndValue:
    """Who a member is and what it wants."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=list(one.topics),
        subscribed_topic_regex=one.pattern,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        server_assignor=one.server_assignor,
        classic_member_metadata=_classic(one.classic),
    )
    return record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=one.member_id), value)


def _classic(info: ClassicInfo | None) -> ClassicMemberMetadata | None:
    if info is None:
        return None
    return ClassicMemberMetadata(
        session_timeout_ms=info.session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in info.protocols],
    )


def progress(group_id: str, one: ConsumerMember) -> KeyAndValue:
    """How far a member is."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=one.epoch,
        previous_member_epoch=one.previous_epoch,
        state=int(one.state),
        assigned_partitions=_partitions(one.assigned),
        partitions_pending_revocation=_partitions(one.revoking),
    )
    return record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.member_id), value)


def _partitions(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(assignment.items())
    ]


def pattern(group_id: str, text: str, topics: Iterable[str] | None, version: int = 0, at_ms: int = 0) -> KeyAndValue:
    """The topics that a regular expression names; None when nobody uses it any more."""
    value = None
    if topics is not None:
        value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=at_ms)
    return record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=text), value)


def member_tombstones(group_id: str, member_id: str) -> list[KeyAndValue]:
    """The end of a member: first what it has, then what it was to have, then itself."""
    return [
        record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[KeyAndValue]:
    """The end of a group without members."""
    return [
        record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        record(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
