"""FeatureLevelRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class FeatureLevelRecord(Message):
    """Kafka's FeatureLevelRecord, versions 0."""

    __slots__ = ("feature_level", "name")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 12
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("feature_level", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name = name
        self.feature_level = feature_level
