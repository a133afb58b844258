"""Consumer groups as a tool sees them: list, describe, offsets, delete. Each raises the KafkaError it was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, raise_for
from tidelog.client.client import Client, TopicPartition
from tidelog.client.coordinators import GROUP, MOVING, ask_coordinator, wait_for_coordinator
from tidelog.client.query import query
from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.wire.codec import decode
from tidelog.wire.message import Message
from tidelog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.messages.delete_groups import DeleteGroupsRequest
from tidelog.wire.messages.describe_groups import DescribeGroupsRequest
from tidelog.wire.messages.list_groups import ListGroupsRequest
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.wire.records.consumer_protocol_assignment import ConsumerProtocolAssignment

_NAMED_TOPICS_VERSION = 9
"""Newest version of OffsetCommit and OffsetFetch that speaks of topics by their names."""


class GroupListing(NamedTuple):
    """One line of a list."""

    group: str
    state: str
    type: str
    protocol_type: str
    coordinator: int


class GroupMember(NamedTuple):
    """Who is in a group and what it was given."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[TopicPartition]


class GroupView(NamedTuple):
    """A group with its members."""

    group: str
    state: str
    type: str
    protocol: str
    coordinator: int
    members: list[GroupMember]


class Committed(NamedTuple):
    """What a group has committed for a partition."""

    offset: int
    leader_epoch: int
    metadata: str


def list_groups(client: Client) -> list[GroupListing]:
    """Every group of the cluster: each broker knows those it looks after."""
    found = []
    for broker_id in sorted(client.refresh().brokers):
        answer = client.ask(ListGroupsRequest(), broker_id=broker_id)
        raise_for(answer.error_code)
        found += [
            GroupListing(one.group_id, one.group_state, one.group_type, one.protocol_type, broker_id)
            for one in answer.groups
        ]
    return sorted(found)


def _ask_coordinator(
    client: Client, group: str, request: Message, code_of: Callable[[Any], int], highest: int | None = None
) -> tuple[int, Any]:
    return ask_coordinator(client, group, GROUP, request, code_of, highest=highest)


def describe_group(client: Client, group: str) -> GroupView:
    """A group of either protocol; GROUP_ID_NOT_FOUND when there is none."""
    request = DescribeGroupsRequest(groups=[group])
    broker_id, answer = _ask_coordinator(client, group, request, lambda one: int(one.groups[0].error_code))
    found = answer.groups[0]
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND or found.group_state == "Dead":
        return _describe_consumer_group(client, group)
    raise_for(found.error_code, found.error_message)
    members = [
        GroupMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            _assigned(one.member_assignment) if found.protocol_type == "consumer" else [],
        )
        for one in found.members
    ]
    return GroupView(group, found.group_state, "classic", found.protocol_data, broker_id, members)


def _describe_consumer_group(client: Client, group: str) -> GroupView:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    try:
        broker_id, answer = _ask_coordinator(client, group, request, lambda one: int(one.groups[0].error_code))
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:  # a cluster without that protocol has no such groups
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}") from None
        raise
    found = answer.groups[0]
    raise_for(found.error_code, found.error_message or f"there is no group {group!r}")
    members = [
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            [
                (topic.topic_name, partition)
                for topic in one.assignment.topic_partitions
                for partition in sorted(topic.partitions)
            ],
        )
        for one in found.members
    ]
    return GroupView(group, found.group_state, "consumer", found.assignor_name, broker_id, members)


def _assigned(data: bytes) -> list[TopicPartition]:
    """What a consumer was given; nothing where it cannot be read. Version 0 is the beginning of every version."""
    try:
        assignment, _ = decode(ConsumerProtocolAssignment, 0, data, 2)
    except (DecodeError, IndexError):
        return []
    return sorted((one.topic, partition) for one in assignment.assigned_partitions for partition in one.partitions)


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, Committed]:
    """All that a group has committed."""
    request = OffsetFetchRequest(group_id=group, topics=None)
    request.groups = [OffsetFetchRequestGroup(group_id=group, topics=None)]

    def code_of(answer: Any) -> int:
        return int(answer.groups[0].error_code if answer.groups else answer.error_code)

    _, answer = _ask_coordinator(client, group, request, code_of, _NAMED_TOPICS_VERSION)
    raise_for(code_of(answer))
    found: dict[TopicPartition, Committed] = {}
    for topic in answer.groups[0].topics if answer.groups else answer.topics:
        for one in topic.partitions:
            raise_for(one.error_code)
            found[topic.name, one.partition_index] = Committed(
                one.committed_offset, one.committed_leader_epoch, one.metadata or ""
            )
    return found


def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit for a group that has no members."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=offsets[topic, partition])
                for _, partition in rows
            ],
        )
        for topic, rows in groupby(sorted(offsets), key=lambda pair: pair[0])
    ]

    def code_of(answer: Any) -> int:
        return int(next((one.error_code for topic in answer.topics for one in topic.partitions if one.error_code), 0))

    request = OffsetCommitRequest(group_id=group, topics=topics)
    _, answer = _ask_coordinator(client, group, request, code_of, _NAMED_TOPICS_VERSION)
    raise_for(code_of(answer))


def delete_group(client: Client, group: str) -> None:
    """Delete an empty group with its offsets."""
    request = DeleteGroupsRequest(groups_names=[group])
    _, answer = _ask_coordinator(client, group, request, lambda one: int(one.results[0].error_code))
    raise_for(answer.results[0].error_code)


# --- positions, which Kafka's protocol cannot say ---


def report_positions(client: Client, group: str, positions: Mapping[TopicPartition, int]) -> bool:
    """Tell the coordinator what this consumer will read next; False where it is not one of Tidelog's."""
    rows = [[topic, partition, position] for (topic, partition), position in positions.items()]
    return _ask_privately(client, group, "report_positions", {"group": group, "positions": rows}) is not None


def reported_positions(client: Client, group: str) -> dict[TopicPartition, int]:
    """What consumers of a group reported lately; empty for clients that do not, and for other brokers."""
    answer = _ask_privately(client, group, "positions", {"group": group}) or {"positions": []}
    rows: Iterable[Sequence[Any]] = answer["positions"]
    return {(str(topic), int(partition)): int(position) for topic, partition, position in rows}


def _ask_privately(client: Client, group: str, question: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    deadline = Deadline(client.timeout_ms)
    try:
        broker_id = wait_for_coordinator(client, group, GROUP, deadline)
        return query(client.connect(broker_id, deadline, "query"), question, arguments, deadline.remaining_ms)
    except KafkaError as error:
        if error.code in (
            ErrorCode.NETWORK_EXCEPTION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.BROKER_NOT_AVAILABLE,
            *MOVING,
        ):
            return None  # Apache Kafka ends the connection; an older node does not know the question
        raise
