"""DeleteGroups, versions 0 to 2: empty groups with their offsets (KIP-229)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups import commits
from tidelog.node.group_requests import replying
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DELETE_GROUPS
VERSIONS = (0, 2)


def handle(node: Node, request: Request) -> None:
    """Each group by itself; answered when the last deletion is committed."""
    names = list(dict.fromkeys(request.body.groups_names))
    response = DeleteGroupsResponse()
    left = len(names)
    reply = replying(node, request)

    def done(group_id: str, code: ErrorCode) -> None:
        nonlocal left
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        left -= 1
        if not left:
            reply(response)

    if not names:
        reply(response)
    for group_id in names:
        try:
            commits.delete_group(node.groups.state_of(group_id), group_id, partial(done, group_id))
        except KafkaError as error:
            done(group_id, error.code)
