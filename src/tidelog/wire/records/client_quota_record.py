"""ClientQuotaRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class EntityData(Message):
    """What ClientQuotaRecord.entity holds."""

    __slots__ = ("entity_name", "entity_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("entity_type", "string", "0+", "", -1, "", "", None),
        ("entity_name", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ClientQuotaRecord(Message):
    """Kafka's ClientQuotaRecord, versions 0."""

    __slots__ = ("entity", "key", "remove", "value")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 14
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("entity", (EntityData,), "0+", "", -1, "", (), None),
        ("key", "string", "0+", "", -1, "", "", None),
        ("value", "float64", "0+", "", -1, "", 0.0, None),
        ("remove", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.key = key
        self.value = value
        self.remove = remove
