"""SyncGroupRequest and SyncGroupResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class SyncGroupRequestAssignment(Message):
    """What SyncGroupRequest.assignments holds."""

    __slots__ = ("assignment", "member_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("assignment", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    """Kafka's SyncGroupRequest, versions 0-5."""

    __slots__ = (
        "assignments",
        "generation_id",
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_name",
        "protocol_type",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 14
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("generation_id", "int32", "0+", "", -1, "", 0, None),
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", None, None),
        ("protocol_type", "string", "5+", "5+", -1, "", None, None),
        ("protocol_name", "string", "5+", "5+", -1, "", None, None),
        ("assignments", (SyncGroupRequestAssignment,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY else assignments


class SyncGroupResponse(Message):
    """Kafka's SyncGroupResponse, versions 0-5."""

    __slots__ = ("assignment", "error_code", "protocol_name", "protocol_type", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 14
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("protocol_type", "string", "5+", "5+", -1, "", None, None),
        ("protocol_name", "string", "5+", "5+", -1, "", None, None),
        ("assignment", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
