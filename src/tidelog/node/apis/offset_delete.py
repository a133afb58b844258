"""OffsetDelete, version 0: offsets of topics that a group does not read any more (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups import commits
from tidelog.node.group_requests import replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.OFFSET_DELETE
VERSIONS = (0, 0)


def handle(node: Node, request: Request) -> None:
    """Each partition by itself; answered when the deletion is committed."""
    body = request.body
    reply = replying(node, request)
    codes: dict[tuple[str, int], ErrorCode] = {}
    wanted = []
    for topic in body.topics:
        for one in topic.partitions:
            if node.image.topic(topic.name) is None:
                codes[topic.name, one.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append((topic.name, one.partition_index))

    def deleted(found: dict[tuple[str, int], ErrorCode]) -> None:
        codes.update(found)
        response = OffsetDeleteResponse()
        for topic in body.topics:
            partitions = [
                OffsetDeleteResponsePartition(
                    partition_index=one.partition_index, error_code=codes[topic.name, one.partition_index]
                )
                for one in topic.partitions
            ]
            response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        reply(response)

    try:
        commits.delete(node.groups.state_of(body.group_id), body.group_id, wanted, deleted)
    except KafkaError as error:
        reply(OffsetDeleteResponse(error_code=error.code))
