"""LeaveGroup, versions 0 to 5: members go, several in one request from version 3 on (KIP-345), with a reason (v5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.classic.liveness import Leaving
from tidelog.node.group_requests import replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.LEAVE_GROUP
VERSIONS = (0, 5)
BATCHED_VERSION = 3


def handle(node: Node, request: Request) -> None:
    """Each member by itself, and one rebalance for all."""
    body = request.body
    reply = replying(node, request)
    if request.api_version < BATCHED_VERSION:
        leaving = [Leaving(body.member_id, None)]
    else:
        leaving = [Leaving(one.member_id, one.group_instance_id) for one in body.members]

    def left(codes: list[ErrorCode]) -> None:
        if request.api_version < BATCHED_VERSION:
            reply(LeaveGroupResponse(error_code=codes[0]))
            return
        reply(
            LeaveGroupResponse(
                members=[
                    MemberResponse(member_id=one.member_id, group_instance_id=one.instance_id, error_code=code)
                    for one, code in zip(leaving, codes, strict=True)
                ]
            )
        )

    try:
        node.groups.leave(body.group_id, leaving, left)
    except KafkaError as error:
        reply(LeaveGroupResponse(error_code=error.code))
