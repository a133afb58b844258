"""FindCoordinator, versions 0 to 6: where a group or a transactional id is looked after (KIP-699 batches, v4).

The topic that holds the coordinator's state is made on the way where it is missing, and the answer waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.coordination.coordinator import partition_for
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.node.topic_view import visible_leader
from tidelog.transactions.service import TOPIC as TRANSACTIONS_TOPIC
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.FIND_COORDINATOR
VERSIONS = (0, 6)
BATCHED_VERSION = 4
GROUP, TRANSACTION = 0, 1
TOPIC_OF = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}


def handle(node: Node, request: Request) -> FindCoordinatorResponse | None:
    """Answer when the topic with the state is there."""
    body = request.body
    keys = body.coordinator_keys if request.api_version >= BATCHED_VERSION else [body.key]
    topic = TOPIC_OF.get(body.key_type)
    if topic is None:
        return _answer(request, [_failed(key, ErrorCode.INVALID_REQUEST, "unknown type of key") for key in keys])

    def ready() -> None:
        found = [_find(node, topic, key, request.listener) for key in keys]
        node.outbox.reply(request.connection_id, request.slot, _answer(request, found))

    node.internal_topics.ensure(topic, ready)
    return None


def _find(node: Node, topic: str, key: str, listener: str) -> Coordinator:
    image = node.image
    found = image.topic(topic)
    if found is None or not found.partitions:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} could not be made yet")
    partition = found.partitions.get(partition_for(key, len(found.partitions)))
    leader = -1 if partition is None else visible_leader(image, partition, listener)[0]
    endpoint = image.brokers[leader].endpoint(listener) if leader >= 0 else None
    if endpoint is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's partition has no leader now")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)


def _failed(key: str, code: ErrorCode, reason: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=reason)


def _answer(request: Request, found: list[Coordinator]) -> FindCoordinatorResponse:
    if request.api_version >= BATCHED_VERSION:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )
