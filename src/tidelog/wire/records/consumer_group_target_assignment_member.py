"""ConsumerGroupTargetAssignmentMemberKey and ConsumerGroupTargetAssignmentMemberValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Kafka's ConsumerGroupTargetAssignmentMemberKey, versions 0."""

    __slots__ = ("group_id", "member_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 7
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0", "", -1, "", "", None),
        ("member_id", "string", "0", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class TopicPartition(Message):
    """What ConsumerGroupTargetAssignmentMemberValue.topic_partitions holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """Kafka's ConsumerGroupTargetAssignmentMemberValue, versions 0."""

    __slots__ = ("topic_partitions",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 7
    FIELDS: ClassVar[tuple[Field, ...]] = (("topic_partitions", (TopicPartition,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
