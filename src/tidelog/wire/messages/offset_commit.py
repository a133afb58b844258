"""OffsetCommitRequest and OffsetCommitResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class OffsetCommitRequestPartition(Message):
    """What OffsetCommitRequestTopic.partitions holds."""

    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("committed_offset", "int64", "0+", "", -1, "", 0, None),
        ("committed_leader_epoch", "int32", "6+", "", -1, "", -1, None),
        ("committed_metadata", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    """What OffsetCommitRequest.topics holds."""

    __slots__ = ("name", "partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-9", "", -1, "", "", None),
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("partitions", (OffsetCommitRequestPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitRequest(Message):
    """Kafka's OffsetCommitRequest, versions 2-10."""

    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "retention_time_ms",
        "topics",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_VERSIONS: ClassVar[str] = "8+"
    API_KEY: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("generation_id_or_member_epoch", "int32", "1+", "", -1, "", -1, None),
        ("member_id", "string", "1+", "", -1, "", "", None),
        ("group_instance_id", "string", "7+", "7+", -1, "", None, None),
        ("retention_time_ms", "int64", "2-4", "", -1, "", -1, None),
        ("topics", (OffsetCommitRequestTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY else topics


class OffsetCommitResponsePartition(Message):
    """What OffsetCommitResponseTopic.partitions holds."""

    __slots__ = ("error_code", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    """What OffsetCommitResponse.topics holds."""

    __slots__ = ("name", "partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-9", "", -1, "", "", None),
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("partitions", (OffsetCommitResponsePartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitResponse(Message):
    """Kafka's OffsetCommitResponse, versions 2-10."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_VERSIONS: ClassVar[str] = "8+"
    API_KEY: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "3+", "", -1, "", 0, None),
        ("topics", (OffsetCommitResponseTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
