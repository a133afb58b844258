"""OffsetCommit, versions 2 to 10: a group's place in partitions, kept in `__consumer_offsets`.

KIP-211 retention runs by the group's own state (v5; before, a client could name one), KIP-320 the leader epoch (v6),
KIP-345 static members (v7), KIP-848 member epochs (v9), topics by id (v10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups import commits
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.OFFSET_COMMIT
VERSIONS = (2, 10)
BY_TOPIC_ID_VERSION = 10


def handle(node: Node, request: Request) -> None:
    """Answer when the offsets are committed; partitions of topics that are not there are refused by themselves."""
    body = request.body
    response = OffsetCommitResponse()
    wanted: list[commits.Commit] = []
    answers: list[OffsetCommitResponsePartition] = []
    for topic in body.topics:
        name = node.topic_name(topic.topic_id) if request.api_version >= BY_TOPIC_ID_VERSION else topic.name
        missing = ErrorCode.NONE
        if name is None:
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        elif node.image.topic(name) is None:
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        told = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(told)
        for one in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=missing)
            told.partitions.append(answer)
            if missing is ErrorCode.NONE and name is not None:
                answers.append(answer)
                wanted.append(
                    commits.Commit(
                        name,
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata or "",
                    )
                )
    committer = commits.Committer(
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        request.api_version,
    )

    def committed(codes: list[ErrorCode]) -> None:
        for answer, code in zip(answers, codes, strict=True):
            answer.error_code = code
        node.outbox.reply(request.connection_id, request.slot, response)

    try:
        commits.commit(node.groups.state_of(body.group_id), committer, wanted, body.retention_time_ms, committed)
    except KafkaError as error:
        committed([error.code] * len(answers))
