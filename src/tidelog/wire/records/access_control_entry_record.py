"""AccessControlEntryRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class AccessControlEntryRecord(Message):
    """Kafka's AccessControlEntryRecord, versions 0."""

    __slots__ = (
        "host",
        "id",
        "operation",
        "pattern_type",
        "permission_type",
        "principal",
        "resource_name",
        "resource_type",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 18
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
        ("pattern_type", "int8", "0+", "", -1, "", 0, None),
        ("principal", "string", "0+", "", -1, "", "", None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("operation", "int8", "0+", "", -1, "", 0, None),
        ("permission_type", "int8", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
