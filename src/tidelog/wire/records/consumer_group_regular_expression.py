"""ConsumerGroupRegularExpressionKey and ConsumerGroupRegularExpressionValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ConsumerGroupRegularExpressionKey(Message):
    """Kafka's ConsumerGroupRegularExpressionKey, versions 0."""

    __slots__ = ("group_id", "regular_expression")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 16
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0", "", -1, "", "", None),
        ("regular_expression", "string", "0", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


class ConsumerGroupRegularExpressionValue(Message):
    """Kafka's ConsumerGroupRegularExpressionValue, versions 0."""

    __slots__ = ("timestamp", "topics", "version")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 16
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", "[]string", "0+", "", -1, "", (), None),
        ("version", "int64", "0+", "", -1, "", 0, None),
        ("timestamp", "int64", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.version = version
        self.timestamp = timestamp
