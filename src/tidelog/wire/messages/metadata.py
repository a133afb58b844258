"""MetadataRequest and MetadataResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class MetadataRequestTopic(Message):
    """What MetadataRequest.topics holds."""

    __slots__ = ("name", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("name", "string", "0+", "10+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    """Kafka's MetadataRequest, versions 0-13."""

    __slots__ = (
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "topics",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_VERSIONS: ClassVar[str] = "9+"
    API_KEY: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", (MetadataRequestTopic,), "0+", "1+", -1, "", (), None),
        ("allow_auto_topic_creation", "bool", "4+", "", -1, "", True, None),
        ("include_cluster_authorized_operations", "bool", "8-10", "", -1, "", False, None),
        ("include_topic_authorized_operations", "bool", "8+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    """What MetadataResponse.brokers holds."""

    __slots__ = ("host", "node_id", "port", "rack")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("node_id", "int32", "0+", "", -1, "", 0, None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "int32", "0+", "", -1, "", 0, None),
        ("rack", "string", "1+", "1+", -1, "", None, None),
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


class MetadataResponsePartition(Message):
    """What MetadataResponseTopic.partitions holds."""

    __slots__ = (
        "error_code",
        "isr_nodes",
        "leader_epoch",
        "leader_id",
        "offline_replicas",
        "partition_index",
        "replica_nodes",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "7+", "", -1, "", -1, None),
        ("replica_nodes", "[]int32", "0+", "", -1, "", (), None),
        ("isr_nodes", "[]int32", "0+", "", -1, "", (), None),
        ("offline_replicas", "[]int32", "5+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class MetadataResponseTopic(Message):
    """What MetadataResponse.topics holds."""

    __slots__ = ("error_code", "is_internal", "name", "partitions", "topic_authorized_operations", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("name", "string", "0+", "12+", -1, "", "", None),
        ("topic_id", "uuid", "10+", "", -1, "", ZERO_UUID, None),
        ("is_internal", "bool", "1+", "", -1, "", False, None),
        ("partitions", (MetadataResponsePartition,), "0+", "", -1, "", (), None),
        ("topic_authorized_operations", "int32", "8+", "", -1, "", -2147483648, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    """Kafka's MetadataResponse, versions 0-13."""

    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_VERSIONS: ClassVar[str] = "9+"
    API_KEY: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "3+", "", -1, "", 0, None),
        ("brokers", (MetadataResponseBroker,), "0+", "", -1, "", (), None),
        ("cluster_id", "string", "2+", "2+", -1, "", None, None),
        ("controller_id", "int32", "1+", "", -1, "", -1, None),
        ("topics", (MetadataResponseTopic,), "0+", "", -1, "", (), None),
        ("cluster_authorized_operations", "int32", "8-10", "", -1, "", -2147483648, None),
        ("error_code", "int16", "13+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
