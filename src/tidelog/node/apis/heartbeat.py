"""Heartbeat, versions 0 to 4: a member of a classic group is alive. KIP-345 static members (v3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.HEARTBEAT
VERSIONS = (0, 4)


def handle(node: Node, request: Request) -> HeartbeatResponse:
    """Keep the session; the code says whether to join again."""
    body = request.body
    code = node.groups.heartbeat(body.group_id, body.member_id, body.group_instance_id, body.generation_id)
    return HeartbeatResponse(error_code=code)
