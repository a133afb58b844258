"""ConsumerGroupTargetAssignmentMetadataKey and ConsumerGroupTargetAssignmentMetadataValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Kafka's ConsumerGroupTargetAssignmentMetadataKey, versions 0."""

    __slots__ = ("group_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (("group_id", "string", "0", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """Kafka's ConsumerGroupTargetAssignmentMetadataValue, versions 0."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("assignment_epoch", "int32", "0+", "", -1, "", 0, None),
        ("assignment_timestamp", "int64", "0+", "", 0, "0+", 0, None),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
