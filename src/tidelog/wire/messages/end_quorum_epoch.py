"""EndQuorumEpochRequest and EndQuorumEpochResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ReplicaInfo(Message):
    """What PartitionData.preferred_candidates holds."""

    __slots__ = ("candidate_directory_id", "candidate_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("candidate_id", "int32", "1+", "", -1, "", 0, None),
        ("candidate_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        candidate_id: int = 0,
        candidate_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id


class EndQuorumEpochRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("leader_epoch", "leader_id", "partition_index", "preferred_candidates", "preferred_successors")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("preferred_successors", "[]int32", "0", "", -1, "", (), None),
        ("preferred_candidates", (ReplicaInfo,), "1+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] = EMPTY,
        preferred_candidates: list[ReplicaInfo] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors = [] if preferred_successors is EMPTY else preferred_successors
        self.preferred_candidates = [] if preferred_candidates is EMPTY else preferred_candidates


class EndQuorumEpochRequestTopicData(Message):
    """What EndQuorumEpochRequest.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (EndQuorumEpochRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class LeaderEndpoint(Message):
    """What EndQuorumEpochRequest.leader_endpoints holds."""

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


class EndQuorumEpochRequest(Message):
    """Kafka's EndQuorumEpochRequest, versions 0-1."""

    __slots__ = ("cluster_id", "leader_endpoints", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 54
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", None, None),
        ("topics", (EndQuorumEpochRequestTopicData,), "0+", "", -1, "", (), None),
        ("leader_endpoints", (LeaderEndpoint,), "1+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints


class EndQuorumEpochResponsePartitionData(Message):
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


class EndQuorumEpochResponseTopicData(Message):
    """What EndQuorumEpochResponse.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (EndQuorumEpochResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """What EndQuorumEpochResponse.node_endpoints holds."""

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


class EndQuorumEpochResponse(Message):
    """Kafka's EndQuorumEpochResponse, versions 0-1."""

    __slots__ = ("error_code", "node_endpoints", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 54
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("topics", (EndQuorumEpochResponseTopicData,), "0+", "", -1, "", (), None),
        ("node_endpoints", (NodeEndpoint,), "1+", "", 0, "1+", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
