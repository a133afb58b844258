"""ListGroups, versions 0 to 5: the groups this node looks after, by state (KIP-518, v4) and by type (KIP-848, v5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.list_groups import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.LIST_GROUPS
VERSIONS = (0, 5)


def handle(node: Node, request: Request) -> ListGroupsResponse:
    """What is known; where a shard is still being read, the code says that it may not be all."""
    body = request.body
    states = {one.lower() for one in body.states_filter}
    types = {one.lower() for one in body.types_filter}
    response = ListGroupsResponse()
    if node.groups.is_loading:
        response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for state in node.groups.states():
        for group in state.groups.values():
            if (not states or group.state.value.lower() in states) and (not types or group.type_name in types):
                response.groups.append(
                    ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type or "",
                        group_state=group.state.value,
                        group_type=group.type_name,
                    )
                )
    return response
