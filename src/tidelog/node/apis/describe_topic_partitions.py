"""DescribeTopicPartitions, version 0: topics page by page, with the eligible leader replicas (KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.controller.entities import Partition as PartitionImage
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.node.topic_view import is_internal_topic, offline_replicas, visible_leader
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_TOPIC_PARTITIONS
VERSIONS = (0, 0)


def handle(node: Node, request: Request) -> DescribeTopicPartitionsResponse:
    """Topics in the order of their names, from the cursor on, at most the wanted number of partitions."""
    body = request.body
    wanted = sorted({topic.name for topic in body.topics}) or sorted(node.image.topic_ids)
    first_name, first_index = ("", 0) if body.cursor is None else (body.cursor.topic_name, body.cursor.partition_index)
    room = max(1, min(body.response_partition_limit, node.config.max_request_partition_size_limit))
    response = DescribeTopicPartitionsResponse()
    for name in wanted:
        if name < first_name:
            continue
        topic = node.image.topic(name)
        if topic is None:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
            )
            continue
        answer = DescribeTopicPartitionsResponseTopic(
            name=name, topic_id=topic.topic_id, is_internal=is_internal_topic(name)
        )
        response.topics.append(answer)
        for index in sorted(topic.partitions):
            if name == first_name and index < first_index:
                continue
            if room == 0:
                response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=index)
                return response
            room -= 1
            answer.partitions.append(_describe(node, request, index, topic.partitions[index]))
    return response


def _describe(
    node: Node, request: Request, index: int, partition: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    leader, code = visible_leader(node.image, partition, request.listener)
    return DescribeTopicPartitionsResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(node.image, partition, request.listener),
    )
