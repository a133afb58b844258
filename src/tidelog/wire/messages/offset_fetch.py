"""OffsetFetchRequest and OffsetFetchResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class OffsetFetchRequestTopic(Message):
    """What OffsetFetchRequest.topics holds."""

    __slots__ = ("name", "partition_indexes")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-7", "", -1, "", "", None),
        ("partition_indexes", "[]int32", "0-7", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestTopics(Message):
    """What OffsetFetchRequestGroup.topics holds."""

    __slots__ = ("name", "partition_indexes", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "8-9", "", -1, "", "", None),
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("partition_indexes", "[]int32", "8+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestGroup(Message):
    """What OffsetFetchRequest.groups holds."""

    __slots__ = ("group_id", "member_epoch", "member_id", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "8+", "", -1, "", "", None),
        ("member_id", "string", "9+", "9+", -1, "", None, None),
        ("member_epoch", "int32", "9+", "", -1, "", -1, None),
        ("topics", (OffsetFetchRequestTopics,), "8+", "8+", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is EMPTY else topics


class OffsetFetchRequest(Message):
    """Kafka's OffsetFetchRequest, versions 1-10."""

    __slots__ = ("group_id", "groups", "require_stable", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0-7", "", -1, "", "", None),
        ("topics", (OffsetFetchRequestTopic,), "0-7", "2-7", -1, "", (), None),
        ("groups", (OffsetFetchRequestGroup,), "8+", "", -1, "", (), None),
        ("require_stable", "bool", "7+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequestGroup] = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.groups = [] if groups is EMPTY else groups
        self.require_stable = require_stable


class OffsetFetchResponsePartition(Message):
    """What OffsetFetchResponseTopic.partitions holds."""

    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0-7", "", -1, "", 0, None),
        ("committed_offset", "int64", "0-7", "", -1, "", 0, None),
        ("committed_leader_epoch", "int32", "5-7", "", -1, "", -1, None),
        ("metadata", "string", "0-7", "0-7", -1, "", "", None),
        ("error_code", "int16", "0-7", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    """What OffsetFetchResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-7", "", -1, "", "", None),
        ("partitions", (OffsetFetchResponsePartition,), "0-7", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponsePartitions(Message):
    """What OffsetFetchResponseTopics.partitions holds."""

    __slots__ = ("committed_leader_epoch", "committed_offset", "error_code", "metadata", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "8+", "", -1, "", 0, None),
        ("committed_offset", "int64", "8+", "", -1, "", 0, None),
        ("committed_leader_epoch", "int32", "8+", "", -1, "", -1, None),
        ("metadata", "string", "8+", "8+", -1, "", "", None),
        ("error_code", "int16", "8+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    """What OffsetFetchResponseGroup.topics holds."""

    __slots__ = ("name", "partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "8-9", "", -1, "", "", None),
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("partitions", (OffsetFetchResponsePartitions,), "8+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponseGroup(Message):
    """What OffsetFetchResponse.groups holds."""

    __slots__ = ("error_code", "group_id", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "8+", "", -1, "", "", None),
        ("topics", (OffsetFetchResponseTopics,), "8+", "", -1, "", (), None),
        ("error_code", "int16", "8+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = EMPTY,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    """Kafka's OffsetFetchResponse, versions 1-10."""

    __slots__ = ("error_code", "groups", "throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "3+", "", -1, "", 0, None),
        ("topics", (OffsetFetchResponseTopic,), "0-7", "", -1, "", (), None),
        ("error_code", "int16", "2-7", "", -1, "", 0, None),
        ("groups", (OffsetFetchResponseGroup,), "8+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
