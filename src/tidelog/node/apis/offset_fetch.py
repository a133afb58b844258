"""OffsetFetch, versions 1 to 10: what groups have committed.

KIP-88 all of a group's partitions by null (v2), KIP-320 the leader epoch (v5), KIP-447 require-stable (v7), KIP-709
several groups (v8), KIP-848 member epochs (v9), topics by id (v10).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups import commits
from tidelog.groups.commits import Fetched
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tidelog.wire.uuids import ZERO_UUID

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.OFFSET_FETCH
VERSIONS = (1, 10)
TOP_ERROR_VERSION = 2
GROUPS_VERSION = 8
BY_TOPIC_ID_VERSION = 10


def handle(node: Node, request: Request) -> None:
    """Each group by itself; the answer is complete when the last one is."""
    if request.api_version < GROUPS_VERSION:
        _fetch_one(node, request)
        return
    response = OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id=group.group_id) for group in request.body.groups]
    )
    left = len(response.groups)

    def done() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            node.outbox.reply(request.connection_id, request.slot, response)

    if not left:
        done()
    for group, answer in zip(request.body.groups, response.groups, strict=True):
        _fetch_group(node, request, group, answer, done)


def _fetch_group(node: Node, request: Request, group: Any, answer: OffsetFetchResponseGroup, done: Any) -> None:
    by_id = request.api_version >= BY_TOPIC_ID_VERSION
    unknown: list[OffsetFetchResponseTopics] = []
    wanted: list[tuple[str, int]] | None = None
    if group.topics is not None:
        wanted = []
        for topic in group.topics:
            name = node.topic_name(topic.topic_id) if by_id else topic.name
            if name is None:
                unknown.append(_unknown_topic(topic))
            else:
                wanted += [(name, index) for index in topic.partition_indexes]

    def committed(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            answer.topics = _topics(node, found, by_id) + unknown
        else:
            answer.error_code = code
        done()

    found: list[Fetched] = []
    try:
        state = node.groups.state_of(group.group_id)
        commits.check_reader(state, group.group_id, group.member_id, group.member_epoch)
        found += commits.fetch(state, group.group_id, wanted, require_stable=request.body.require_stable)
        state.when_committed(committed)
    except KafkaError as error:
        committed(error.code)


def _unknown_topic(topic: Any) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in topic.partition_indexes
        ],
    )


def _topics(node: Node, found: list[Fetched], by_id: bool) -> list[OffsetFetchResponseTopics]:
    topics = []
    for name, rows in groupby(sorted(found, key=lambda row: row.topic), key=lambda row: row.topic):
        topic_id = node.groups.topics.id_of(name) or ZERO_UUID
        if by_id and topic_id == ZERO_UUID:
            continue  # the topic is gone: there is no id to speak of it by
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=row.partition,
                committed_offset=row.committed.offset,
                committed_leader_epoch=row.committed.leader_epoch,
                metadata=row.committed.metadata,
                error_code=row.code,
            )
            for row in rows
        ]
        topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
    return topics


def _fetch_one(node: Node, request: Request) -> None:
    """The form before version 8."""
    body = request.body
    wanted = None
    if body.topics is not None:
        wanted = [(topic.name, index) for topic in body.topics for index in topic.partition_indexes]
    found: list[Fetched] = []

    def committed(code: ErrorCode) -> None:
        response = OffsetFetchResponse()
        rows = found
        if code is not ErrorCode.NONE:
            if request.api_version >= TOP_ERROR_VERSION:
                response.error_code = code
            rows = [Fetched(topic, index, commits.NO_OFFSET, code) for topic, index in wanted or ()]
        for name, partitions in groupby(sorted(rows, key=lambda row: row.topic), key=lambda row: row.topic):
            response.topics.append(
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=row.partition,
                            committed_offset=row.committed.offset,
                            committed_leader_epoch=row.committed.leader_epoch,
                            metadata=row.committed.metadata,
                            error_code=row.code,
                        )
                        for row in partitions
                    ],
                )
            )
        node.outbox.reply(request.connection_id, request.slot, response)

    try:
        state = node.groups.state_of(body.group_id)
        found += commits.fetch(state, body.group_id, wanted, require_stable=body.require_stable)
        state.when_committed(committed)
    except KafkaError as error:
        committed(error.code)
