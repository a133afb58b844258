"""ProduceRequest and ProduceResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message, Records


class PartitionProduceData(Message):
    """What TopicProduceData.partition_data holds."""

    __slots__ = ("index", "records")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("index", "int32", "0+", "", -1, "", 0, None),
        ("records", "records", "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        records: Records = None,
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Message):
    """What ProduceRequest.topic_data holds."""

    __slots__ = ("name", "partition_data", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-12", "", -1, "", "", None),
        ("topic_id", "uuid", "13+", "", -1, "", ZERO_UUID, None),
        ("partition_data", (PartitionProduceData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY else partition_data


class ProduceRequest(Message):
    """Kafka's ProduceRequest, versions 3-13."""

    __slots__ = ("acks", "timeout_ms", "topic_data", "transactional_id")
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_VERSIONS: ClassVar[str] = "9+"
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "3+", "3+", -1, "", None, None),
        ("acks", "int16", "0+", "", -1, "", 0, None),
        ("timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("topic_data", (TopicProduceData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data


class BatchIndexAndErrorMessage(Message):
    """What PartitionProduceResponse.record_errors holds."""

    __slots__ = ("batch_index", "batch_index_error_message")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("batch_index", "int32", "8+", "", -1, "", 0, None),
        ("batch_index_error_message", "string", "8+", "8+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Message):
    """What PartitionProduceResponse.current_leader holds."""

    __slots__ = ("leader_epoch", "leader_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("leader_id", "int32", "10+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "10+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Message):
    """What TopicProduceResponse.partition_responses holds."""

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("base_offset", "int64", "0+", "", -1, "", 0, None),
        ("log_append_time_ms", "int64", "2+", "", -1, "", -1, None),
        ("log_start_offset", "int64", "5+", "", -1, "", -1, None),
        ("record_errors", (BatchIndexAndErrorMessage,), "8+", "", -1, "", (), None),
        ("error_message", "string", "8+", "8+", -1, "", None, None),
        ("current_leader", LeaderIdAndEpoch, "10+", "", 0, "10+", LeaderIdAndEpoch, None),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is EMPTY else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(Message):
    """What ProduceResponse.responses holds."""

    __slots__ = ("name", "partition_responses", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0-12", "", -1, "", "", None),
        ("topic_id", "uuid", "13+", "", -1, "", ZERO_UUID, None),
        ("partition_responses", (PartitionProduceResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is EMPTY else partition_responses


class NodeEndpoint(Message):
    """What ProduceResponse.node_endpoints holds."""

    __slots__ = ("host", "node_id", "port", "rack")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("node_id", "int32", "10+", "", -1, "", 0, None),
        ("host", "string", "10+", "", -1, "", "", None),
        ("port", "int32", "10+", "", -1, "", 0, None),
        ("rack", "string", "10+", "10+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ProduceResponse(Message):
    """Kafka's ProduceResponse, versions 3-13."""

    __slots__ = ("node_endpoints", "responses", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_VERSIONS: ClassVar[str] = "9+"
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("responses", (TopicProduceResponse,), "0+", "", -1, "", (), None),
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("node_endpoints", (NodeEndpoint,), "10+", "", 0, "10+", (), None),
    )

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses = [] if responses is EMPTY else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
