"""ConsumerGroupDescribe, versions 0 and 1: groups of the consumer protocol (KIP-848).

Version 1 says which protocol each member speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import Assignment as MemberAssignment
from tidelog.groups.consumer.member import ConsumerMember
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.CONSUMER_GROUP_DESCRIBE
VERSIONS = (0, 1)
CLASSIC, CONSUMER = 0, 1


def handle(node: Node, request: Request) -> ConsumerGroupDescribeResponse:
    """Each group by itself."""
    return ConsumerGroupDescribeResponse(groups=[_describe(node, one) for one in request.body.group_ids])


def _describe(node: Node, group_id: str) -> DescribedGroup:
    try:
        group = node.groups.state_of(group_id).groups.get(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
    if not isinstance(group, ConsumerGroup):
        what = "not found" if group is None else "is not a consumer group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {what}.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members, node.config.group_consumer_assignors[0]),
        members=[_member(node, group, member) for member in group.members.values()],
    )


def _member(node: Node, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(node, member.assigned),
        target_assignment=_assignment(node, group.target_of(member.member_id)),
        member_type=CONSUMER if member.classic is None else CLASSIC,
    )


def _assignment(node: Node, assignment: MemberAssignment) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
            for topic_id, partitions in sorted(assignment.items())
            if (name := node.topic_name(topic_id)) is not None
        ]
    )
