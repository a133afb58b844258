"""ConsumerGroupMetadataKey and ConsumerGroupMetadataValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ConsumerGroupMetadataKey(Message):
    """Kafka's ConsumerGroupMetadataKey, versions 0."""

    __slots__ = ("group_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (("group_id", "string", "0", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class ConsumerGroupMetadataValue(Message):
    """Kafka's ConsumerGroupMetadataValue, versions 0."""

    __slots__ = ("epoch", "metadata_hash")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("epoch", "int32", "0+", "", -1, "", 0, None),
        ("metadata_hash", "int64", "0+", "", 0, "0+", 0, None),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
