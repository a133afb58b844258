"""ConsumerGroupHeartbeat, versions 0 and 1: all of a member's life in the consumer protocol (KIP-848).

Version 1 adds regular-expression subscriptions, and member ids are the client's own (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.controller.levels import GROUP_VERSION
from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.consumer.heartbeat import Beat
from tidelog.node.group_requests import client_host, replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
VERSIONS = (0, 1)
CONSUMER_PROTOCOL_LEVEL = 1
"""Of the feature group.version: below it some broker may not know the protocol's records."""


def handle(node: Node, request: Request) -> None:
    """Give the request to its group."""
    body = request.body
    reply = replying(node, request)
    if node.image.features.get(GROUP_VERSION, 0) < CONSUMER_PROTOCOL_LEVEL:
        reason = f"The cluster's {GROUP_VERSION} is below {CONSUMER_PROTOCOL_LEVEL}."
        reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=reason))
        return
    owned = None
    if body.topic_partitions is not None:
        owned = {one.topic_id: frozenset(one.partitions) for one in body.topic_partitions if one.partitions}
    beat = Beat(
        body.group_id,
        body.member_id,
        body.member_epoch,
        body.instance_id,
        body.rack_id,
        body.rebalance_timeout_ms,
        None if body.subscribed_topic_names is None else tuple(body.subscribed_topic_names),
        body.subscribed_topic_regex,
        body.server_assignor,
        owned,
        request.client_id or "",
        client_host(request),
        request.api_version,
    )
    try:
        node.groups.consumer_heartbeat(beat, reply)
    except KafkaError as error:
        reply(ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None))
