"""LegacyOffsetCommitKey and LegacyOffsetCommitValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class LegacyOffsetCommitKey(Message):
    """Kafka's LegacyOffsetCommitKey, versions 0."""

    __slots__ = ("group", "partition", "topic")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group", "string", "0", "", -1, "", "", None),
        ("topic", "string", "0", "", -1, "", "", None),
        ("partition", "int32", "0", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


class LegacyOffsetCommitValue(Message):
    """Kafka's LegacyOffsetCommitValue, versions 0."""

    __slots__ = ("commit_timestamp", "metadata", "offset")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("offset", "int64", "0", "", -1, "", 0, None),
        ("metadata", "string", "0", "", -1, "", "", None),
        ("commit_timestamp", "int64", "0", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
