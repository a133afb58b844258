"""ConsumerGroupCurrentMemberAssignmentKey and ConsumerGroupCurrentMemberAssignmentValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Kafka's ConsumerGroupCurrentMemberAssignmentKey, versions 0."""

    __slots__ = ("group_id", "member_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 8
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


class TopicPartitions(Message):
    """What ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions holds."""

    __slots__ = ("assignment_epochs", "partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
        ("assignment_epochs", "[]int32", "0+", "0+", 0, "0+", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
        assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """Kafka's ConsumerGroupCurrentMemberAssignmentValue, versions 0."""

    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_epoch", "int32", "0+", "", -1, "", 0, None),
        ("previous_member_epoch", "int32", "0+", "", -1, "", 0, None),
        ("state", "int8", "0+", "", -1, "", 0, None),
        ("assigned_partitions", (TopicPartitions,), "0+", "", -1, "", (), None),
        ("partitions_pending_revocation", (TopicPartitions,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
        partitions_pending_revocation: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
        )
