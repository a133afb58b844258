"""VoteRequest and VoteResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class VoteRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = (
        "last_offset",
        "last_offset_epoch",
        "partition_index",
        "pre_vote",
        "replica_directory_id",
        "replica_epoch",
        "replica_id",
        "voter_directory_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("replica_epoch", "int32", "0+", "", -1, "", 0, None),
        ("replica_id", "int32", "0+", "", -1, "", 0, None),
        ("replica_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
        ("voter_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
        ("last_offset_epoch", "int32", "0+", "", -1, "", 0, None),
        ("last_offset", "int64", "0+", "", -1, "", 0, None),
        ("pre_vote", "bool", "2+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        voter_directory_id: bytes = ZERO_UUID,
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote


class VoteRequestTopicData(Message):
    """What VoteRequest.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (VoteRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class VoteRequest(Message):
    """Kafka's VoteRequest, versions 0-2."""

    __slots__ = ("cluster_id", "topics", "voter_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 52
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", None, None),
        ("voter_id", "int32", "1+", "", -1, "", -1, None),
        ("topics", (VoteRequestTopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequestTopicData] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics


class VoteResponsePartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = ("error_code", "leader_epoch", "leader_id", "partition_index", "vote_granted")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("vote_granted", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.vote_granted = vote_granted


class VoteResponseTopicData(Message):
    """What VoteResponse.topics holds."""

    __slots__ = ("partitions", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", (VoteResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """What VoteResponse.node_endpoints holds."""

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


class VoteResponse(Message):
    """Kafka's VoteResponse, versions 0-2."""

    __slots__ = ("error_code", "node_endpoints", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 52
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("topics", (VoteResponseTopicData,), "0+", "", -1, "", (), None),
        ("node_endpoints", (NodeEndpoint,), "1+", "", 0, "1+", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
