"""JoinGroup, versions 0 to 9: become a member, or take part in the next generation.

KIP-62 a rebalance timeout of its own (v1), KIP-394 the member id first (v4), KIP-345 static members (v5), KIP-559 the
protocol's type (v7), KIP-800 the reason (v8), KIP-814 a returning static leader assigns nothing (v9). The answer is
held until the join phase is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import KafkaError
from tidelog.events import Request
from tidelog.groups.classic.join import Join
from tidelog.node.group_requests import client_host, replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.JOIN_GROUP
VERSIONS = (0, 9)
NULLABLE_PROTOCOL_VERSION = 7


def handle(node: Node, request: Request) -> None:
    """Give the request to its group."""
    body = request.body
    send = replying(node, request)

    def reply(response: JoinGroupResponse) -> None:
        if response.error_code and request.api_version >= NULLABLE_PROTOCOL_VERSION:
            response.protocol_name = None
        elif response.protocol_name is None and request.api_version < NULLABLE_PROTOCOL_VERSION:
            response.protocol_name = ""
        send(response)

    wanted = Join(
        body.group_id,
        body.member_id,
        body.group_instance_id,
        request.client_id or "",
        client_host(request),
        body.session_timeout_ms,
        body.session_timeout_ms if body.rebalance_timeout_ms < 0 else body.rebalance_timeout_ms,
        body.protocol_type,
        tuple((one.name, bytes(one.metadata)) for one in body.protocols),
        request.api_version,
    )
    try:
        node.groups.join(wanted, reply)
    except KafkaError as error:
        reply(JoinGroupResponse(error_code=error.code, member_id=body.member_id))
