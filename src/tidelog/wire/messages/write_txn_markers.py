"""WriteTxnMarkersRequest and WriteTxnMarkersResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class WritableTxnMarkerTopic(Message):
    """What WritableTxnMarker.topics holds."""

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


class WritableTxnMarker(Message):
    """What WriteTxnMarkersRequest.markers holds."""

    __slots__ = (
        "coordinator_epoch",
        "producer_epoch",
        "producer_id",
        "topics",
        "transaction_result",
        "transaction_version",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("transaction_result", "bool", "0+", "", -1, "", False, None),
        ("topics", (WritableTxnMarkerTopic,), "0+", "", -1, "", (), None),
        ("coordinator_epoch", "int32", "0+", "", -1, "", 0, None),
        ("transaction_version", "int8", "2+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is EMPTY else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    """Kafka's WriteTxnMarkersRequest, versions 1-2."""

    __slots__ = ("markers",)
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 27
    FIELDS: ClassVar[tuple[Field, ...]] = (("markers", (WritableTxnMarker,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers


class WritableTxnMarkerPartitionResult(Message):
    """What WritableTxnMarkerTopicResult.partitions holds."""

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


class WritableTxnMarkerTopicResult(Message):
    """What WritableTxnMarkerResult.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (WritableTxnMarkerPartitionResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class WritableTxnMarkerResult(Message):
    """What WriteTxnMarkersResponse.markers holds."""

    __slots__ = ("producer_id", "topics")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("topics", (WritableTxnMarkerTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY else topics


class WriteTxnMarkersResponse(Message):
    """Kafka's WriteTxnMarkersResponse, versions 1-2."""

    __slots__ = ("markers",)
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 27
    FIELDS: ClassVar[tuple[Field, ...]] = (("markers", (WritableTxnMarkerResult,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers
