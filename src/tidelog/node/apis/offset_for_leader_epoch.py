"""OffsetForLeaderEpoch, versions 2 to 4: where an epoch ends in this leader's log (KIP-101, KIP-279, KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import KafkaError
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.OFFSET_FOR_LEADER_EPOCH
VERSIONS = (2, 4)


def handle(node: Node, request: Request) -> OffsetForLeaderEpochResponse:
    """Each partition by itself."""
    response = OffsetForLeaderEpochResponse()
    for topic in request.body.topics:
        answers = []
        for wanted in topic.partitions:
            answer = EpochEndOffset(partition=wanted.partition)
            answers.append(answer)
            try:
                partition = node.replicas.find(topic.topic, wanted.partition)
                partition.check_leader(wanted.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
            except KafkaError as error:
                answer.error_code = error.code
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response
