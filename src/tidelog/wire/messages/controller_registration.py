"""ControllerRegistrationRequest and ControllerRegistrationResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Listener(Message):
    """What ControllerRegistrationRequest.listeners holds."""

    __slots__ = ("host", "name", "port", "security_protocol")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "uint16", "0+", "", -1, "", 0, None),
        ("security_protocol", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Feature(Message):
    """What ControllerRegistrationRequest.features holds."""

    __slots__ = ("max_supported_version", "min_supported_version", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("min_supported_version", "int16", "0+", "", -1, "", 0, None),
        ("max_supported_version", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class ControllerRegistrationRequest(Message):
    """Kafka's ControllerRegistrationRequest, versions 0."""

    __slots__ = ("controller_id", "features", "incarnation_id", "listeners", "zk_migration_ready")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 70
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("controller_id", "int32", "0+", "", -1, "", 0, None),
        ("incarnation_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("zk_migration_ready", "bool", "0+", "", -1, "", False, None),
        ("listeners", (Listener,), "0+", "", -1, "", (), None),
        ("features", (Feature,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features


class ControllerRegistrationResponse(Message):
    """Kafka's ControllerRegistrationResponse, versions 0."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 70
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
