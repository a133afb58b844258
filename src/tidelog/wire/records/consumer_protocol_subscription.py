"""ConsumerProtocolSubscription.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TopicPartition(Message):
    """What ConsumerProtocolSubscription.owned_partitions holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "1+", "", -1, "", "", None),
        ("partitions", "[]int32", "1+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolSubscription(Message):
    """Kafka's ConsumerProtocolSubscription, versions 0-3."""

    __slots__ = ("generation_id", "owned_partitions", "rack_id", "topics", "user_data")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", "[]string", "0+", "", -1, "", (), None),
        ("user_data", "bytes", "0+", "0+", -1, "", None, None),
        ("owned_partitions", (TopicPartition,), "1+", "", -1, "", (), None),
        ("generation_id", "int32", "2+", "", -1, "", -1, None),
        ("rack_id", "string", "3+", "3+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = EMPTY,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
