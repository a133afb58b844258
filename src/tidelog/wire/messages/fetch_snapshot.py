"""FetchSnapshotRequest and FetchSnapshotResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message, Records


class FetchSnapshotRequestSnapshotId(Message):
    """What PartitionSnapshot.snapshot_id holds."""

    __slots__ = ("end_offset", "epoch")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("end_offset", "int64", "0+", "", -1, "", 0, None),
        ("epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class FetchSnapshotRequestPartitionSnapshot(Message):
    """What TopicSnapshot.partitions holds."""

    __slots__ = ("current_leader_epoch", "partition", "position", "replica_directory_id", "snapshot_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition", "int32", "0+", "", -1, "", 0, None),
        ("current_leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("snapshot_id", FetchSnapshotRequestSnapshotId, "0+", "", -1, "", FetchSnapshotRequestSnapshotId, None),
        ("position", "int64", "0+", "", -1, "", 0, None),
        ("replica_directory_id", "uuid", "1+", "", 0, "1+", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: FetchSnapshotRequestSnapshotId | None = None,
        position: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.snapshot_id = FetchSnapshotRequestSnapshotId() if snapshot_id is None else snapshot_id
        self.position = position
        self.replica_directory_id = replica_directory_id


class FetchSnapshotRequestTopicSnapshot(Message):
    """What FetchSnapshotRequest.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (FetchSnapshotRequestPartitionSnapshot,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotRequestPartitionSnapshot] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class FetchSnapshotRequest(Message):
    """Kafka's FetchSnapshotRequest, versions 0-1."""

    __slots__ = ("cluster_id", "max_bytes", "replica_id", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 59
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", 0, "0+", None, None),
        ("replica_id", "int32", "0+", "", -1, "", -1, None),
        ("max_bytes", "int32", "0+", "", -1, "", 2147483647, None),
        ("topics", (FetchSnapshotRequestTopicSnapshot,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequestTopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is EMPTY else topics


class FetchSnapshotResponseSnapshotId(Message):
    """What PartitionSnapshot.snapshot_id holds."""

    __slots__ = ("end_offset", "epoch")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("end_offset", "int64", "0+", "", -1, "", 0, None),
        ("epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class LeaderIdAndEpoch(Message):
    """What PartitionSnapshot.current_leader holds."""

    __slots__ = ("leader_epoch", "leader_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class FetchSnapshotResponsePartitionSnapshot(Message):
    """What TopicSnapshot.partitions holds."""

    __slots__ = ("current_leader", "error_code", "index", "position", "size", "snapshot_id", "unaligned_records")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("snapshot_id", FetchSnapshotResponseSnapshotId, "0+", "", -1, "", FetchSnapshotResponseSnapshotId, None),
        ("current_leader", LeaderIdAndEpoch, "0+", "", 0, "0+", LeaderIdAndEpoch, None),
        ("size", "int64", "0+", "", -1, "", 0, None),
        ("position", "int64", "0+", "", -1, "", 0, None),
        ("unaligned_records", "records", "0+", "", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: FetchSnapshotResponseSnapshotId | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Records = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.snapshot_id = FetchSnapshotResponseSnapshotId() if snapshot_id is None else snapshot_id
        self.current_leader = current_leader
        self.size = size
        self.position = position
        self.unaligned_records = unaligned_records


class FetchSnapshotResponseTopicSnapshot(Message):
    """What FetchSnapshotResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (FetchSnapshotResponsePartitionSnapshot,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotResponsePartitionSnapshot] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """What FetchSnapshotResponse.node_endpoints holds."""

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


class FetchSnapshotResponse(Message):
    """Kafka's FetchSnapshotResponse, versions 0-1."""

    __slots__ = ("error_code", "node_endpoints", "throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 59
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("topics", (FetchSnapshotResponseTopicSnapshot,), "0+", "", -1, "", (), None),
        ("node_endpoints", (NodeEndpoint,), "1+", "", 0, "1+", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponseTopicSnapshot] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
