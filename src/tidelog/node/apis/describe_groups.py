"""DescribeGroups, versions 0 to 6: classic groups and their members.

KIP-345 instance ids (v4), KIP-1043 a missing group is an error (v6) where it was a dead one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_GROUPS
VERSIONS = (0, 6)
NOT_FOUND_VERSION = 6


def handle(node: Node, request: Request) -> DescribeGroupsResponse:
    """Each group by itself."""
    return DescribeGroupsResponse(groups=[_describe(node, one, request.api_version) for one in request.body.groups])


def _describe(node: Node, group_id: str, version: int) -> DescribedGroup:
    try:
        group = node.groups.state_of(group_id).groups.get(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
    if not isinstance(group, ClassicGroup):
        if version < NOT_FOUND_VERSION:
            return DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        what = "not found" if group is None else "is not a classic group"
        return DescribedGroup(
            group_id=group_id,
            group_state=State.DEAD.value,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {what}.",
        )
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )
