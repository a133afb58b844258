"""FetchRequest and FetchResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message, Records


class ReplicaState(Message):
    """What FetchRequest.replica_state holds."""

    __slots__ = ("replica_epoch", "replica_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("replica_id", "int32", "15+", "", -1, "", -1, None),
        ("replica_epoch", "int64", "15+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Message):
    """What FetchTopic.partitions holds."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "replica_directory_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition", "int32", "0+", "", -1, "", 0, None),
        ("current_leader_epoch", "int32", "9+", "", -1, "", -1, None),
        ("fetch_offset", "int64", "0+", "", -1, "", 0, None),
        ("last_fetched_epoch", "int32", "12+", "", -1, "", -1, None),
        ("log_start_offset", "int64", "5+", "", -1, "", -1, None),
        ("partition_max_bytes", "int32", "0+", "", -1, "", 0, None),
        ("replica_directory_id", "uuid", "17+", "", 0, "17+", ZERO_UUID, None),
        ("high_watermark", "int64", "18+", "", 1, "18+", 9223372036854775807, None),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Message):
    """What FetchRequest.topics holds."""

    __slots__ = ("partitions", "topic", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0-12", "", -1, "", "", None),
        ("topic_id", "uuid", "13+", "", -1, "", ZERO_UUID, None),
        ("partitions", (FetchPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ForgottenTopic(Message):
    """What FetchRequest.forgotten_topics_data holds."""

    __slots__ = ("partitions", "topic", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "7-12", "", -1, "", "", None),
        ("topic_id", "uuid", "13+", "", -1, "", ZERO_UUID, None),
        ("partitions", "[]int32", "7+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class FetchRequest(Message):
    """Kafka's FetchRequest, versions 4-18."""

    __slots__ = (
        "cluster_id",
        "forgotten_topics_data",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_id",
        "replica_state",
        "session_epoch",
        "session_id",
        "topics",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_VERSIONS: ClassVar[str] = "12+"
    API_KEY: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "12+", "12+", 0, "12+", None, None),
        ("replica_id", "int32", "0-14", "", -1, "", -1, None),
        ("replica_state", ReplicaState, "15+", "", 1, "15+", ReplicaState, None),
        ("max_wait_ms", "int32", "0+", "", -1, "", 0, None),
        ("min_bytes", "int32", "0+", "", -1, "", 0, None),
        ("max_bytes", "int32", "3+", "", -1, "", 2147483647, None),
        ("isolation_level", "int8", "4+", "", -1, "", 0, None),
        ("session_id", "int32", "7+", "", -1, "", 0, None),
        ("session_epoch", "int32", "7+", "", -1, "", -1, None),
        ("topics", (FetchTopic,), "0+", "", -1, "", (), None),
        ("forgotten_topics_data", (ForgottenTopic,), "7+", "", -1, "", (), None),
        ("rack_id", "string", "11+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id


class EpochEndOffset(Message):
    """What PartitionData.diverging_epoch holds."""

    __slots__ = ("end_offset", "epoch")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("epoch", "int32", "12+", "", -1, "", -1, None),
        ("end_offset", "int64", "12+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Message):
    """What PartitionData.current_leader holds."""

    __slots__ = ("leader_epoch", "leader_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("leader_id", "int32", "12+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "12+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Message):
    """What PartitionData.snapshot_id holds."""

    __slots__ = ("end_offset", "epoch")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("end_offset", "int64", "0+", "", -1, "", -1, None),
        ("epoch", "int32", "0+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Message):
    """What PartitionData.aborted_transactions holds."""

    __slots__ = ("first_offset", "producer_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("producer_id", "int64", "4+", "", -1, "", 0, None),
        ("first_offset", "int64", "4+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Message):
    """What FetchableTopicResponse.partitions holds."""

    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition_index",
        "preferred_read_replica",
        "records",
        "snapshot_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("high_watermark", "int64", "0+", "", -1, "", 0, None),
        ("last_stable_offset", "int64", "4+", "", -1, "", -1, None),
        ("log_start_offset", "int64", "5+", "", -1, "", -1, None),
        ("diverging_epoch", EpochEndOffset, "12+", "", 0, "12+", EpochEndOffset, None),
        ("current_leader", LeaderIdAndEpoch, "12+", "", 1, "12+", LeaderIdAndEpoch, None),
        ("snapshot_id", SnapshotId, "12+", "", 2, "12+", SnapshotId, None),
        ("aborted_transactions", (AbortedTransaction,), "4+", "4+", -1, "", (), None),
        ("preferred_read_replica", "int32", "11+", "", -1, "", -1, None),
        ("records", "records", "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,
        records: Records = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Message):
    """What FetchResponse.responses holds."""

    __slots__ = ("partitions", "topic", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0-12", "", -1, "", "", None),
        ("topic_id", "uuid", "13+", "", -1, "", ZERO_UUID, None),
        ("partitions", (PartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """What FetchResponse.node_endpoints holds."""

    __slots__ = ("host", "node_id", "port", "rack")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("node_id", "int32", "16+", "", -1, "", 0, None),
        ("host", "string", "16+", "", -1, "", "", None),
        ("port", "int32", "16+", "", -1, "", 0, None),
        ("rack", "string", "16+", "16+", -1, "", None, None),
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


class FetchResponse(Message):
    """Kafka's FetchResponse, versions 4-18."""

    __slots__ = ("error_code", "node_endpoints", "responses", "session_id", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_VERSIONS: ClassVar[str] = "12+"
    API_KEY: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "7+", "", -1, "", 0, None),
        ("session_id", "int32", "7+", "", -1, "", 0, None),
        ("responses", (FetchableTopicResponse,), "0+", "", -1, "", (), None),
        ("node_endpoints", (NodeEndpoint,), "16+", "", 0, "16+", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
