"""LeaveGroupRequest and LeaveGroupResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class MemberIdentity(Message):
    """What LeaveGroupRequest.members holds."""

    __slots__ = ("group_instance_id", "member_id", "reason")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "3+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", None, None),
        ("reason", "string", "5+", "5+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    """Kafka's LeaveGroupRequest, versions 0-5."""

    __slots__ = ("group_id", "member_id", "members")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 13
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("member_id", "string", "0-2", "", -1, "", "", None),
        ("members", (MemberIdentity,), "3+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY else members


class MemberResponse(Message):
    """What LeaveGroupResponse.members holds."""

    __slots__ = ("error_code", "group_instance_id", "member_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "3+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", "", None),
        ("error_code", "int16", "3+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    """Kafka's LeaveGroupResponse, versions 0-5."""

    __slots__ = ("error_code", "members", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 13
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("members", (MemberResponse,), "3+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY else members
