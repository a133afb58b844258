"""AssignReplicasToDirsRequest and AssignReplicasToDirsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class AssignReplicasToDirsRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("partition_index",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("partition_index", "int32", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class AssignReplicasToDirsRequestTopicData(Message):
    """What DirectoryData.topics holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", (AssignReplicasToDirsRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AssignReplicasToDirsRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AssignReplicasToDirsRequestDirectoryData(Message):
    """What AssignReplicasToDirsRequest.directories holds."""

    __slots__ = ("id", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("topics", (AssignReplicasToDirsRequestTopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        topics: list[AssignReplicasToDirsRequestTopicData] = EMPTY,
    ) -> None:
        self.id = id
        self.topics = [] if topics is EMPTY else topics


class AssignReplicasToDirsRequest(Message):
    """Kafka's AssignReplicasToDirsRequest, versions 0."""

    __slots__ = ("broker_epoch", "broker_id", "directories")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 73
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
        ("directories", (AssignReplicasToDirsRequestDirectoryData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequestDirectoryData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is EMPTY else directories


class AssignReplicasToDirsResponsePartitionData(Message):
    """What TopicData.partitions holds."""

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


class AssignReplicasToDirsResponseTopicData(Message):
    """What DirectoryData.topics holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", (AssignReplicasToDirsResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AssignReplicasToDirsResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AssignReplicasToDirsResponseDirectoryData(Message):
    """What AssignReplicasToDirsResponse.directories holds."""

    __slots__ = ("id", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("topics", (AssignReplicasToDirsResponseTopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        topics: list[AssignReplicasToDirsResponseTopicData] = EMPTY,
    ) -> None:
        self.id = id
        self.topics = [] if topics is EMPTY else topics


class AssignReplicasToDirsResponse(Message):
    """Kafka's AssignReplicasToDirsResponse, versions 0."""

    __slots__ = ("directories", "error_code", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 73
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("directories", (AssignReplicasToDirsResponseDirectoryData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponseDirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is EMPTY else directories
