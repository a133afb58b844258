"""JoinGroupRequest and JoinGroupResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class JoinGroupRequestProtocol(Message):
    """What JoinGroupRequest.protocols holds."""

    __slots__ = ("metadata", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("metadata", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Message):
    """Kafka's JoinGroupRequest, versions 0-9."""

    __slots__ = (
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_type",
        "protocols",
        "reason",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 11
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("session_timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("rebalance_timeout_ms", "int32", "1+", "", -1, "", -1, None),
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "5+", "5+", -1, "", None, None),
        ("protocol_type", "string", "0+", "", -1, "", "", None),
        ("protocols", (JoinGroupRequestProtocol,), "0+", "", -1, "", (), None),
        ("reason", "string", "8+", "8+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY else protocols
        self.reason = reason


class JoinGroupResponseMember(Message):
    """What JoinGroupResponse.members holds."""

    __slots__ = ("group_instance_id", "member_id", "metadata")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "5+", "5+", -1, "", None, None),
        ("metadata", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Message):
    """Kafka's JoinGroupResponse, versions 0-9."""

    __slots__ = (
        "error_code",
        "generation_id",
        "leader",
        "member_id",
        "members",
        "protocol_name",
        "protocol_type",
        "skip_assignment",
        "throttle_time_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 11
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "2+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("generation_id", "int32", "0+", "", -1, "", -1, None),
        ("protocol_type", "string", "7+", "7+", -1, "", None, None),
        ("protocol_name", "string", "0+", "7+", -1, "", "", None),
        ("leader", "string", "0+", "", -1, "", "", None),
        ("skip_assignment", "bool", "9+", "", -1, "", False, None),
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("members", (JoinGroupResponseMember,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is EMPTY else members
