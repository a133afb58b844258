"""FindCoordinatorRequest and FindCoordinatorResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class FindCoordinatorRequest(Message):
    """Kafka's FindCoordinatorRequest, versions 0-6."""

    __slots__ = ("coordinator_keys", "key", "key_type")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 10
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("key", "string", "0-3", "", -1, "", "", None),
        ("key_type", "int8", "1+", "", -1, "", 0, None),
        ("coordinator_keys", "[]string", "4+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = EMPTY,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY else coordinator_keys


class Coordinator(Message):
    """What FindCoordinatorResponse.coordinators holds."""

    __slots__ = ("error_code", "error_message", "host", "key", "node_id", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("key", "string", "4+", "", -1, "", "", None),
        ("node_id", "int32", "4+", "", -1, "", 0, None),
        ("host", "string", "4+", "", -1, "", "", None),
        ("port", "int32", "4+", "", -1, "", 0, None),
        ("error_code", "int16", "4+", "", -1, "", 0, None),
        ("error_message", "string", "4+", "4+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    """Kafka's FindCoordinatorResponse, versions 0-6."""

    __slots__ = ("coordinators", "error_code", "error_message", "host", "node_id", "port", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 10
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "0-3", "", -1, "", 0, None),
        ("error_message", "string", "1-3", "1-3", -1, "", "", None),
        ("node_id", "int32", "0-3", "", -1, "", 0, None),
        ("host", "string", "0-3", "", -1, "", "", None),
        ("port", "int32", "0-3", "", -1, "", 0, None),
        ("coordinators", (Coordinator,), "4+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY else coordinators
