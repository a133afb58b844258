"""ListOffsetsRequest and ListOffsetsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ListOffsetsPartition(Message):
    """What ListOffsetsTopic.partitions holds."""

    __slots__ = ("current_leader_epoch", "partition_index", "timestamp")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("current_leader_epoch", "int32", "4+", "", -1, "", -1, None),
        ("timestamp", "int64", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Message):
    """What ListOffsetsRequest.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (ListOffsetsPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsRequest(Message):
    """Kafka's ListOffsetsRequest, versions 1-11."""

    __slots__ = ("isolation_level", "replica_id", "timeout_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("replica_id", "int32", "0+", "", -1, "", 0, None),
        ("isolation_level", "int8", "2+", "", -1, "", 0, None),
        ("topics", (ListOffsetsTopic,), "0+", "", -1, "", (), None),
        ("timeout_ms", "int32", "10+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Message):
    """What ListOffsetsTopicResponse.partitions holds."""

    __slots__ = ("error_code", "leader_epoch", "offset", "partition_index", "timestamp")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("timestamp", "int64", "1+", "", -1, "", -1, None),
        ("offset", "int64", "1+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "4+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Message):
    """What ListOffsetsResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (ListOffsetsPartitionResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsResponse(Message):
    """Kafka's ListOffsetsResponse, versions 1-11."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_VERSIONS: ClassVar[str] = "6+"
    API_KEY: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "2+", "", -1, "", 0, None),
        ("topics", (ListOffsetsTopicResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
