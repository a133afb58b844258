"""DescribeGroupsRequest and DescribeGroupsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DescribeGroupsRequest(Message):
    """Kafka's DescribeGroupsRequest, versions 0-6."""

    __slots__ = ("groups", "include_authorized_operations")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "5+"
    API_KEY: ClassVar[int] = 15
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("groups", "[]string", "0+", "", -1, "", (), None),
        ("include_authorized_operations", "bool", "3+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(Message):
    """What DescribedGroup.members holds."""

    __slots__ = ("client_host", "client_id", "group_instance_id", "member_assignment", "member_id", "member_metadata")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "4+", "4+", -1, "", None, None),
        ("client_id", "string", "0+", "", -1, "", "", None),
        ("client_host", "string", "0+", "", -1, "", "", None),
        ("member_metadata", "bytes", "0+", "", -1, "", b"", None),
        ("member_assignment", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Message):
    """What DescribeGroupsResponse.groups holds."""

    __slots__ = (
        "authorized_operations",
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "members",
        "protocol_data",
        "protocol_type",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "6+", "6+", -1, "", None, None),
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("group_state", "string", "0+", "", -1, "", "", None),
        ("protocol_type", "string", "0+", "", -1, "", "", None),
        ("protocol_data", "string", "0+", "", -1, "", "", None),
        ("members", (DescribedGroupMember,), "0+", "", -1, "", (), None),
        ("authorized_operations", "int32", "3+", "", -1, "", -2147483648, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Message):
    """Kafka's DescribeGroupsResponse, versions 0-6."""

    __slots__ = ("groups", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "5+"
    API_KEY: ClassVar[int] = 15
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("groups", (DescribedGroup,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
