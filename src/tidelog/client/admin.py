"""Calls that change or describe a cluster. Each raises the KafkaError the cluster answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import groupby
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, error_of, raise_for
from tidelog.client.client import Client, TopicPartition
from tidelog.client.metadata import PartitionView, TopicView
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tidelog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tidelog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


class ResourceType(IntEnum):
    """What a setting belongs to."""

    TOPIC = 2
    BROKER = 4
    """Named by its id; an empty name is the default of all brokers."""


class AlterOperation(IntEnum):
    """What is done to one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigView(NamedTuple):
    """A setting, its value, and where that comes from."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None


CONFIG_SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "properties file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


def create_topic(
    client: Client,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    """Make a topic; -1 leaves a number to the cluster (KIP-464)."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=-1 if assignments else partitions,
                replication_factor=-1 if assignments else replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
                    for partition, replicas in (assignments or {}).items()
                ],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
            )
        ],
        timeout_ms=client.timeout_ms,
        validate_only=validate_only,
    )
    result: CreatableTopicResult = _ask_controller(client, request, lambda answer: answer.topics)[0]
    return result


def delete_topics(client: Client, names: Sequence[str]) -> None:
    """Delete topics; the first refusal is raised after all were tried."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names],
        topic_names=list(names),
        timeout_ms=client.timeout_ms,
    )
    _ask_controller(client, request, lambda answer: answer.responses)
    for name in names:
        client.metadata.topics.pop(name, None)


def create_partitions(client: Client, topic: str, count: int) -> None:
    """Raise the number of a topic's partitions to `count`."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)],
        timeout_ms=client.timeout_ms,
    )
    _ask_controller(client, request, lambda answer: answer.results)


def describe_topics(client: Client, names: Sequence[str] | None = None) -> list[TopicView]:
    """Topics with their partitions, sorted by name; None is all of them. ELRs are told where the cluster can."""
    deadline = Deadline(client.timeout_ms)
    if not client.connect(None, deadline).supports(DescribeTopicPartitionsRequest):
        client.refresh(names, deadline=deadline)
        for name in names or ():
            client.topic(name)
        return sorted(client.metadata.topics.values(), key=lambda topic: topic.name)
    if names is None:
        names = sorted(client.refresh(None, deadline=deadline).topics)
    views: dict[str, TopicView] = {}
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    while names:
        answer = client.ask(
            DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in sorted(set(names))], cursor=cursor
            )
        )
        for topic in answer.topics:
            raise_for(topic.error_code, f"there is no topic {topic.name!r}" if topic.error_code == 3 else topic.name)
            view = views.setdefault(topic.name, TopicView(topic.name, topic.topic_id, topic.is_internal, {}))
            for one in topic.partitions:
                view.partitions[one.partition_index] = PartitionView(
                    one.partition_index,
                    one.leader_id,
                    one.leader_epoch,
                    one.replica_nodes,
                    one.isr_nodes,
                    one.offline_replicas,
                    one.eligible_leader_replicas or [],
                    one.last_known_elr or [],
                )
        if answer.next_cursor is None:
            break
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
    return [views[name] for name in sorted(views)]


def describe_configs(
    client: Client,
    resource_type: ResourceType,
    name: str,
    *,
    keys: Sequence[str] | None = None,
    documentation: bool = False,
) -> list[ConfigView]:
    """The settings of a topic or a broker."""
    return describe_configs_of_all(client, resource_type, [name], keys=keys, documentation=documentation)[name]


def describe_configs_of_all(
    client: Client,
    resource_type: ResourceType,
    names: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    documentation: bool = False,
) -> dict[str, list[ConfigView]]:
    """The settings of several topics, or of one broker, in one request."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configuration_keys=list(keys) if keys is not None else None,
            )
            for name in names
        ],
        include_documentation=documentation,
    )
    answer = client.ask(request, broker_id=_broker_of(resource_type, names[0]))
    described = {}
    for result in answer.results:
        raise_for(result.error_code, result.error_message)
        described[result.resource_name] = [
            ConfigView(
                one.name,
                one.value,
                CONFIG_SOURCES.get(one.config_source, "unknown"),
                one.read_only,
                one.is_sensitive,
                one.documentation,
            )
            for one in sorted(result.configs, key=lambda one: one.name)
        ]
    return described


def alter_configs(
    client: Client,
    resource_type: ResourceType,
    name: str,
    changes: Iterable[tuple[str, AlterOperation, str | None]],
    *,
    validate_only: bool = False,
) -> None:
    """Change settings of a topic or a broker: all of them or none."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    broker_id = _broker_of(resource_type, name)
    if broker_id is not None:
        for one in client.ask(request, broker_id=broker_id).responses:
            raise_for(one.error_code, one.error_message)
    else:
        _ask_controller(client, request, lambda answer: answer.responses)


def delete_records(client: Client, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Give up what is below an offset (-1: all that is committed); the new log start offsets come back."""

    def build(partitions: list[TopicPartition]) -> Message:
        return DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=partition, offset=before[topic, partition])
                        for _, partition in group
                    ],
                )
                for topic, group in groupby(sorted(partitions), key=lambda pair: pair[0])
            ],
            timeout_ms=client.timeout_ms,
        )

    def read(answer: DeleteRecordsResponse) -> Iterable[tuple[TopicPartition, int, int]]:
        for topic in answer.topics:
            for one in topic.partitions:
                yield (topic.name, one.partition_index), one.error_code, one.low_watermark

    return client.ask_leaders(list(before), build, read)


def describe_cluster(client: Client, *, timeout_ms: int | None = None) -> DescribeClusterResponse:
    """The cluster's id, controller and live brokers."""
    answer: DescribeClusterResponse = client.ask(DescribeClusterRequest(), timeout_ms=timeout_ms)
    raise_for(answer.error_code, answer.error_message)
    return answer


def _broker_of(resource_type: ResourceType, name: str) -> int | None:
    """A broker's own settings are asked of that broker: only it knows its properties file."""
    if resource_type is not ResourceType.BROKER or not name:
        return None
    if not name.isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a broker is named by its number, not {name!r}")
    return int(name)


def _ask_controller(client: Client, request: Message, results: Callable[[Any], list[Any]]) -> list[Any]:
    """Ask for a decision; any broker passes it on. "Not the controller" and the like are tried again."""
    deadline = Deadline(client.timeout_ms)
    while True:
        answered = results(client.ask(request, timeout_ms=deadline.remaining_ms))
        failed = [one for one in answered if one.error_code]
        if not failed:
            return answered
        first = failed[0]
        error = error_of(first.error_code, getattr(first, "error_message", None) or getattr(first, "name", None))
        if error.code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED):
            raise error
        client.turn_elsewhere()
        deadline.pause(error)
