"""ConsumerProtocolAssignment.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TopicPartition(Message):
    """What ConsumerProtocolAssignment.assigned_partitions holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolAssignment(Message):
    """Kafka's ConsumerProtocolAssignment, versions 0-3."""

    __slots__ = ("assigned_partitions", "user_data")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("assigned_partitions", (TopicPartition,), "0+", "", -1, "", (), None),
        ("user_data", "bytes", "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] = EMPTY,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data
