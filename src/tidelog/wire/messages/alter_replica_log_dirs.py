"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class AlterReplicaLogDirTopic(Message):
    """What AlterReplicaLogDir.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDir(Message):
    """What AlterReplicaLogDirsRequest.dirs holds."""

    __slots__ = ("path", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("path", "string", "0+", "", -1, "", "", None),
        ("topics", (AlterReplicaLogDirTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY,
    ) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics


class AlterReplicaLogDirsRequest(Message):
    """Kafka's AlterReplicaLogDirsRequest, versions 1-2."""

    __slots__ = ("dirs",)
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 34
    FIELDS: ClassVar[tuple[Field, ...]] = (("dirs", (AlterReplicaLogDir,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = EMPTY,
    ) -> None:
        self.dirs = [] if dirs is EMPTY else dirs


class AlterReplicaLogDirPartitionResult(Message):
    """What AlterReplicaLogDirTopicResult.partitions holds."""

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


class AlterReplicaLogDirTopicResult(Message):
    """What AlterReplicaLogDirsResponse.results holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (AlterReplicaLogDirPartitionResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDirsResponse(Message):
    """Kafka's AlterReplicaLogDirsResponse, versions 1-2."""

    __slots__ = ("results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 34
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("results", (AlterReplicaLogDirTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
