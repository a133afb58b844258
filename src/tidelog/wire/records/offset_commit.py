"""OffsetCommitKey and OffsetCommitValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class OffsetCommitKey(Message):
    """Kafka's OffsetCommitKey, versions 0."""

    __slots__ = ("group", "partition", "topic")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 1
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


class OffsetCommitValue(Message):
    """Kafka's OffsetCommitValue, versions 0-4."""

    __slots__ = ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset", "topic_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("offset", "int64", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "3+", "", -1, "", -1, None),
        ("metadata", "string", "0+", "", -1, "", "", None),
        ("commit_timestamp", "int64", "0+", "", -1, "", 0, None),
        ("expire_timestamp", "int64", "1", "", -1, "", -1, None),
        ("topic_id", "uuid", "4+", "", 0, "4+", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
