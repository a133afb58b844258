"""SyncGroup, versions 0 to 5: the leader hands in everybody's assignment, each member gets its own.

KIP-345 static members (v3), KIP-559 the protocol's type and name (v5). The answer is held until the assignment is
committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import KafkaError
from tidelog.events import Request
from tidelog.groups.classic.sync import Sync
from tidelog.node.group_requests import replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.SYNC_GROUP
VERSIONS = (0, 5)


def handle(node: Node, request: Request) -> None:
    """Give the request to its group."""
    body = request.body
    reply = replying(node, request)
    wanted = Sync(
        body.group_id,
        body.generation_id,
        body.member_id,
        body.group_instance_id,
        body.protocol_type,
        body.protocol_name,
        {one.member_id: bytes(one.assignment) for one in body.assignments},
    )
    try:
        node.groups.sync(wanted, reply)
    except KafkaError as error:
        reply(SyncGroupResponse(error_code=error.code))
