"""DescribeLogDirsRequest and DescribeLogDirsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DescribableLogDirTopic(Message):
    """What DescribeLogDirsRequest.topics holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsRequest(Message):
    """Kafka's DescribeLogDirsRequest, versions 1-5."""

    __slots__ = ("topics",)
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 35
    FIELDS: ClassVar[tuple[Field, ...]] = (("topics", (DescribableLogDirTopic,), "0+", "0+", -1, "", (), None),)

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class DescribeLogDirsPartition(Message):
    """What DescribeLogDirsTopic.partitions holds."""

    __slots__ = ("is_future_key", "offset_lag", "partition_index", "partition_size")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("partition_size", "int64", "0+", "", -1, "", 0, None),
        ("offset_lag", "int64", "0+", "", -1, "", 0, None),
        ("is_future_key", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    """What DescribeLogDirsResult.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (DescribeLogDirsPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsResult(Message):
    """What DescribeLogDirsResponse.results holds."""

    __slots__ = ("error_code", "is_cordoned", "log_dir", "topics", "total_bytes", "usable_bytes")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("log_dir", "string", "0+", "", -1, "", "", None),
        ("topics", (DescribeLogDirsTopic,), "0+", "", -1, "", (), None),
        ("total_bytes", "int64", "4+", "", -1, "", -1, None),
        ("usable_bytes", "int64", "4+", "", -1, "", -1, None),
        ("is_cordoned", "bool", "5+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is EMPTY else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Message):
    """Kafka's DescribeLogDirsResponse, versions 1-5."""

    __slots__ = ("error_code", "results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 35
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "3+", "", -1, "", 0, None),
        ("results", (DescribeLogDirsResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY else results
