"""ConfigRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ConfigRecord(Message):
    """Kafka's ConfigRecord, versions 0."""

    __slots__ = ("name", "resource_name", "resource_type", "value")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
        ("name", "string", "0+", "", -1, "", "", None),
        ("value", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
