"""Metadata, versions 0 to 13: brokers, topics and their leaders.

Version 0 means all topics by an empty list, later ones by null. Topics may be made on the way
(auto.create.topics.enable); the answer then waits until they exist instead of sending the client away to ask again.
KIP-516 topic ids (v10, v12 by id), KIP-1102 (v13 has room for an error that tells a client to begin anew).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.controller.entities import Topic
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.node.topic_view import is_internal_topic, offline_replicas, visible_leader
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.wire.uuids import ZERO_UUID

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.METADATA
VERSIONS = (0, 13)
ALL_BY_EMPTY_LIST_VERSION = 0
NULLABLE_NAME_VERSION = 12
OFFLINE_LEADER_VERSION = 1
CREATE_TOPICS_VERSION = 7


def handle(node: Node, request: Request) -> MetadataResponse | None:
    """Answer from the image, after making topics that are missing where that is allowed."""
    body = request.body
    wants_all = body.topics is None or (not body.topics and request.api_version == ALL_BY_EMPTY_LIST_VERSION)
    if wants_all:
        return _answer(node, request, list(node.image.topics.values()), [])
    if body.allow_auto_topic_creation and node.config.auto_create_topics_enable:
        missing = [
            topic.name
            for topic in body.topics
            if topic.name and topic.topic_id == ZERO_UUID and topic.name not in node.image.topic_ids
        ]
        if missing:
            _create(node, request, missing)
            return None
    return _answer_wanted(node, request, {})


def _create(node: Node, request: Request, names: list[str]) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in dict.fromkeys(names)]

    def created(response: Any, error: str | None) -> None:
        codes: dict[str, int] = {}
        if error is not None:
            codes = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            codes = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
        node.outbox.reply(request.connection_id, request.slot, _answer_wanted(node, request, codes))

    body = CreateTopicsRequest(topics=wanted, timeout_ms=node.config.request_timeout_ms)
    node.link.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, body, created)


_WHILE_BEING_MADE = frozenset((ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER))


def _answer_wanted(node: Node, request: Request, creation_codes: dict[str, int]) -> MetadataResponse:
    found: list[Topic] = []
    failed: list[MetadataResponseTopic] = []
    seen: set[str | bytes] = set()
    for wanted in request.body.topics:
        key = wanted.topic_id if wanted.topic_id != ZERO_UUID else wanted.name
        if key in seen:
            continue
        seen.add(key)
        if wanted.topic_id != ZERO_UUID:
            topic = node.image.topics.get(wanted.topic_id)
            code = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = node.image.topic(wanted.name)
            code = ErrorCode(creation_codes.get(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            if code in _WHILE_BEING_MADE:
                code = ErrorCode.LEADER_NOT_AVAILABLE
        if topic is not None:
            found.append(topic)
        else:
            name = wanted.name if wanted.name or request.api_version >= NULLABLE_NAME_VERSION else ""
            failed.append(MetadataResponseTopic(error_code=code, name=name, topic_id=wanted.topic_id))
    return _answer(node, request, found, failed)


def _answer(node: Node, request: Request, topics: list[Topic], failed: list[MetadataResponseTopic]) -> MetadataResponse:
    brokers = []
    for broker_id, broker in sorted(node.image.brokers.items()):
        endpoint = broker.endpoint(request.listener)
        if endpoint is not None and not broker.fenced:
            brokers.append(
                MetadataResponseBroker(node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=node.cluster_id,
        controller_id=node.controller_for_clients(),
        topics=[_describe(node, request, topic) for topic in topics] + failed,
    )


def _describe(node: Node, request: Request, topic: Topic) -> MetadataResponseTopic:
    partitions = []
    for index, partition in sorted(topic.partitions.items()):
        leader, code = visible_leader(node.image, partition, request.listener)
        partitions.append(
            MetadataResponsePartition(
                error_code=code,
                partition_index=index,
                leader_id=leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=offline_replicas(node.image, partition, request.listener),
            )
        )
    return MetadataResponseTopic(
        name=topic.name, topic_id=topic.topic_id, is_internal=is_internal_topic(topic.name), partitions=partitions
    )
