"""RegisterControllerRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ControllerEndpoint(Message):
    """What RegisterControllerRecord.end_points holds."""

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


class ControllerFeature(Message):
    """What RegisterControllerRecord.features holds."""

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


class RegisterControllerRecord(Message):
    """Kafka's RegisterControllerRecord, versions 0."""

    __slots__ = ("controller_id", "end_points", "features", "incarnation_id", "zk_migration_ready")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 27
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("controller_id", "int32", "0+", "", -1, "", 0, None),
        ("incarnation_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("zk_migration_ready", "bool", "0+", "", -1, "", False, None),
        ("end_points", (ControllerEndpoint,), "0+", "", -1, "", (), None),
        ("features", (ControllerFeature,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] = EMPTY,
        features: list[ControllerFeature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
