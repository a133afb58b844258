"""DescribeProducersRequest and DescribeProducersResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TopicRequest(Message):
    """What DescribeProducersRequest.topics holds."""

    __slots__ = ("name", "partition_indexes")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partition_indexes", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class DescribeProducersRequest(Message):
    """Kafka's DescribeProducersRequest, versions 0."""

    __slots__ = ("topics",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 61
    FIELDS: ClassVar[tuple[Field, ...]] = (("topics", (TopicRequest,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class ProducerState(Message):
    """What PartitionResponse.active_producers holds."""

    __slots__ = (
        "coordinator_epoch",
        "current_txn_start_offset",
        "last_sequence",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("producer_epoch", "int32", "0+", "", -1, "", 0, None),
        ("last_sequence", "int32", "0+", "", -1, "", -1, None),
        ("last_timestamp", "int64", "0+", "", -1, "", -1, None),
        ("coordinator_epoch", "int32", "0+", "", -1, "", 0, None),
        ("current_txn_start_offset", "int64", "0+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Message):
    """What TopicResponse.partitions holds."""

    __slots__ = ("active_producers", "error_code", "error_message", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
        ("active_producers", (ProducerState,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is EMPTY else active_producers


class TopicResponse(Message):
    """What DescribeProducersResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (PartitionResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeProducersResponse(Message):
    """Kafka's DescribeProducersResponse, versions 0."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 61
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("topics", (TopicResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
