"""DescribeQuorumRequest and DescribeQuorumResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class DescribeQuorumRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("partition_index",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("partition_index", "int32", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class DescribeQuorumRequestTopicData(Message):
    """What DescribeQuorumRequest.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (DescribeQuorumRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeQuorumRequest(Message):
    """Kafka's DescribeQuorumRequest, versions 0-2."""

    __slots__ = ("topics",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 55
    FIELDS: ClassVar[tuple[Field, ...]] = (("topics", (DescribeQuorumRequestTopicData,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequestTopicData] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class ReplicaState(Message):
    """What PartitionData.current_voters holds."""

    __slots__ = (
        "last_caught_up_timestamp",
        "last_fetch_timestamp",
        "log_end_offset",
        "replica_directory_id",
        "replica_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("replica_id", "int32", "0+", "", -1, "", 0, None),
        ("replica_directory_id", "uuid", "2+", "", -1, "", ZERO_UUID, None),
        ("log_end_offset", "int64", "0+", "", -1, "", 0, None),
        ("last_fetch_timestamp", "int64", "1+", "", -1, "", -1, None),
        ("last_caught_up_timestamp", "int64", "1+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class DescribeQuorumResponsePartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = (
        "current_voters",
        "error_code",
        "error_message",
        "high_watermark",
        "leader_epoch",
        "leader_id",
        "observers",
        "partition_index",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "2+", "2+", -1, "", "", None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("high_watermark", "int64", "0+", "", -1, "", 0, None),
        ("current_voters", (ReplicaState,), "0+", "", -1, "", (), None),
        ("observers", (ReplicaState,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.observers = [] if observers is EMPTY else observers


class DescribeQuorumResponseTopicData(Message):
    """What DescribeQuorumResponse.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (DescribeQuorumResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Listener(Message):
    """What Node.listeners holds."""

    __slots__ = ("host", "name", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "2+", "", -1, "", "", None),
        ("host", "string", "2+", "", -1, "", "", None),
        ("port", "uint16", "2+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Message):
    """What DescribeQuorumResponse.nodes holds."""

    __slots__ = ("listeners", "node_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("node_id", "int32", "2+", "", -1, "", 0, None),
        ("listeners", (Listener,), "2+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] = EMPTY,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is EMPTY else listeners


class DescribeQuorumResponse(Message):
    """Kafka's DescribeQuorumResponse, versions 0-2."""

    __slots__ = ("error_code", "error_message", "nodes", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 55
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "2+", "2+", -1, "", "", None),
        ("topics", (DescribeQuorumResponseTopicData,), "0+", "", -1, "", (), None),
        ("nodes", (Node,), "2+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponseTopicData] = EMPTY,
        nodes: list[Node] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.nodes = [] if nodes is EMPTY else nodes
