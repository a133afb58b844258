"""BeginQuorumEpochRequest and BeginQuorumEpochResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class BeginQuorumEpochRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("leader_epoch", "leader_id", "partition_index", "voter_directory_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.voter_directory_id = voter_directory_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class BeginQuorumEpochRequestTopicData(Message):
    """What BeginQuorumEpochRequest.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (BeginQuorumEpochRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class LeaderEndpoint(Message):
    """What BeginQuorumEpochRequest.leader_endpoints holds."""

    __slots__ = ("host", "name", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "1+", "", -1, "", "", None),
        ("host", "string", "1+", "", -1, "", "", None),
        ("port", "uint16", "1+", "", -1, "", 0, None),
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


class BeginQuorumEpochRequest(Message):
    """Kafka's BeginQuorumEpochRequest, versions 0-1."""

    __slots__ = ("cluster_id", "leader_endpoints", "topics", "voter_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 53
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", None, None),
        ("voter_id", "int32", "1+", "", -1, "", -1, None),
        ("topics", (BeginQuorumEpochRequestTopicData,), "0+", "", -1, "", (), None),
        ("leader_endpoints", (LeaderEndpoint,), "1+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints


class BeginQuorumEpochResponsePartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("error_code", "leader_epoch", "leader_id", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class BeginQuorumEpochResponseTopicData(Message):
    """What BeginQuorumEpochResponse.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (BeginQuorumEpochResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """What BeginQuorumEpochResponse.node_endpoints holds."""

    __slots__ = ("host", "node_id", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("node_id", "int32", "1+", "", -1, "", 0, None),
        ("host", "string", "1+", "", -1, "", "", None),
        ("port", "uint16", "1+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port


class BeginQuorumEpochResponse(Message):
    """Kafka's BeginQuorumEpochResponse, versions 0-1."""

    __slots__ = ("error_code", "node_endpoints", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 53
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("topics", (BeginQuorumEpochResponseTopicData,), "0+", "", -1, "", (), None),
        ("node_endpoints", (NodeEndpoint,), "1+", "", 0, "1+", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
