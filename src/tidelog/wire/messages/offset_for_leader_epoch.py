"""OffsetForLeaderEpochRequest and OffsetForLeaderEpochResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class OffsetForLeaderPartition(Message):
    """What OffsetForLeaderTopic.partitions holds."""

    __slots__ = ("current_leader_epoch", "leader_epoch", "partition")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition", "int32", "0+", "", -1, "", 0, None),
        ("current_leader_epoch", "int32", "2+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    """What OffsetForLeaderEpochRequest.topics holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partitions", (OffsetForLeaderPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochRequest(Message):
    """Kafka's OffsetForLeaderEpochRequest, versions 2-4."""

    __slots__ = ("replica_id", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 23
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("replica_id", "int32", "3+", "", -1, "", -2, None),
        ("topics", (OffsetForLeaderTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY else topics


class EpochEndOffset(Message):
    """What OffsetForLeaderTopicResult.partitions holds."""

    __slots__ = ("end_offset", "error_code", "leader_epoch", "partition")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("partition", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "1+", "", -1, "", -1, None),
        ("end_offset", "int64", "0+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    """What OffsetForLeaderEpochResponse.topics holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partitions", (EpochEndOffset,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochResponse(Message):
    """Kafka's OffsetForLeaderEpochResponse, versions 2-4."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 23
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "2+", "", -1, "", 0, None),
        ("topics", (OffsetForLeaderTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
