"""ConsumerGroupPartitionMetadataKey and ConsumerGroupPartitionMetadataValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ConsumerGroupPartitionMetadataKey(Message):
    """Kafka's ConsumerGroupPartitionMetadataKey, versions 0."""

    __slots__ = ("group_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (("group_id", "string", "0", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


class PartitionMetadata(Message):
    """What TopicMetadata.partition_metadata holds."""

    __slots__ = ("partition", "racks")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition", "int32", "0+", "", -1, "", 0, None),
        ("racks", "[]string", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] = EMPTY,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is EMPTY else racks


class TopicMetadata(Message):
    """What ConsumerGroupPartitionMetadataValue.topics holds."""

    __slots__ = ("num_partitions", "partition_metadata", "topic_id", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("num_partitions", "int32", "0+", "", -1, "", 0, None),
        ("partition_metadata", (PartitionMetadata,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is EMPTY else partition_metadata


class ConsumerGroupPartitionMetadataValue(Message):
    """Kafka's ConsumerGroupPartitionMetadataValue, versions 0."""

    __slots__ = ("topics",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (("topics", (TopicMetadata,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
