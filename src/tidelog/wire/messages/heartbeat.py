"""HeartbeatRequest and HeartbeatResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class HeartbeatRequest(Message):
    """Kafka's HeartbeatRequest, versions 0-4."""

    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 12
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("generation_id", "int32", "0+", "", -1, "", 0, None),
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Message):
    """Kafka's HeartbeatResponse, versions 0-4."""

    __slots__ = ("error_code", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 12
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
