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
from tidelog.outbox import Timer
from tidelog.replica.fetcher import DOUBT_MS
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
CREATE_TOPICS_VERSION = 7
MAX_WAITING = 10_000
"""Requests that may wait for a leader's successor; a further one is answered with what is known."""
ASKED_AGAIN_MS = 20
"""A client that asks again has often just lost its leader's connection, and ours breaks in the same moment: the answer
waits until we have seen that too, or the client would be sent back to a dead leader."""


def handle(node: Node, request: Request) -> MetadataResponse | None:
    """Answer from the image, after making topics that are missing where that is allowed."""
    body = request.body
    wants_all = body.topics is None or (not body.topics and request.api_version == ALL_BY_EMPTY_LIST_VERSION)
    if not wants_all and body.allow_auto_topic_creation and node.config.auto_create_topics_enable:
        missing = [
            topic.name
            for topic in body.topics
            if topic.name and topic.topic_id == ZERO_UUID and topic.name not in node.image.topic_ids
        ]
        if missing:
            _create(node, request, missing)
            return None
    wait = _Wait(node, request, wants_all)
    if request.connection_id in node.metadata_askers:
        node.outbox.after(ASKED_AGAIN_MS, wait.begin)
        return None
    node.metadata_askers.add(request.connection_id)
    wait.begin()
    return None


class _Wait:
    """A request that waits a moment for the successor of a leader whose connection broke just now.

    A client asks because its own connection to that leader broke. Sent back to it, or told that there is none, some
    clients wait a second before they ask again; the controller needs a fraction of that.
    """

    __slots__ = ("_node", "_request", "_timer", "_wants_all")

    def __init__(self, node: Node, request: Request, wants_all: bool) -> None:
        self._node = node
        self._request = request
        self._wants_all = wants_all
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Answer now, or when the leaders are known, or when that takes too long."""
        waiting = self._node.waiting_for_leaders
        if len(waiting) >= MAX_WAITING or not self._is_in_doubt():
            self._answer()
            return
        waiting[self] = None
        self._timer = self._node.outbox.after(DOUBT_MS, self._give_up)

    def look_again(self) -> None:
        """The metadata changed."""
        if not self._is_in_doubt():
            self._give_up()

    def _give_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._node.waiting_for_leaders.pop(self, None)
        self._answer()

    def _is_in_doubt(self) -> bool:
        node = self._node
        if not node.broker.has_doubts:
            return False
        if self._wants_all:
            topics: list[Topic | None] = list(node.image.topics.values())
        else:
            topics = [
                node.image.topics.get(one.topic_id) if one.topic_id != ZERO_UUID else node.image.topic(one.name)
                for one in self._request.body.topics
            ]
        leaders = {part.leader for topic in topics if topic is not None for part in topic.partitions.values()}
        return any(node.broker.is_doubted(leader) for leader in leaders)

    def _answer(self) -> None:
        node, request = self._node, self._request
        if self._wants_all:
            answer = _answer(node, request, list(node.image.topics.values()), [])
        else:
            answer = _answer_wanted(node, request, {})
        node.outbox.reply(request.connection_id, request.slot, answer)


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
        # One that was fenced just now is still listed, unlike in Kafka: librdkafka forgets a broker that is missing,
        # and when that comes together with a new leader it may lose the way for a second.
        if endpoint is not None and (not broker.fenced or node.broker.is_just_fenced(broker_id)):
            brokers.append(
                MetadataResponseBroker(node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=node.cluster_id,
        controller_id=node.controller_for_clients([one.node_id for one in brokers]),
        topics=[_describe(node, request, topic) for topic in topics] + failed,
    )


def _describe(node: Node, request: Request, topic: Topic) -> MetadataResponseTopic:
    partitions = []
    for index, partition in sorted(topic.partitions.items()):
        leader, code = visible_leader(node.image, partition, request.listener)
        if leader >= 0 and node.broker.is_doubted(leader):
            leader, code = -1, ErrorCode.LEADER_NOT_AVAILABLE
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
