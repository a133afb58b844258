"""TxnOffsetCommitRequest and TxnOffsetCommitResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TxnOffsetCommitRequestPartition(Message):
    """What TxnOffsetCommitRequestTopic.partitions holds."""

    __slots__ = ("committed_leader_epoch", "committed_metadata", "committed_offset", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("committed_offset", "int64", "0+", "", -1, "", 0, None),
        ("committed_leader_epoch", "int32", "2+", "", -1, "", -1, None),
        ("committed_metadata", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    """What TxnOffsetCommitRequest.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (TxnOffsetCommitRequestPartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitRequest(Message):
    """Kafka's TxnOffsetCommitRequest, versions 0-5."""

    __slots__ = (
        "generation_id",
        "group_id",
        "group_instance_id",
        "member_id",
        "producer_epoch",
        "producer_id",
        "topics",
        "transactional_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 28
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "0+", "", -1, "", "", None),
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("generation_id", "int32", "3+", "", -1, "", -1, None),
        ("member_id", "string", "3+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", None, None),
        ("topics", (TxnOffsetCommitRequestTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is EMPTY else topics


class TxnOffsetCommitResponsePartition(Message):
    """What TxnOffsetCommitResponseTopic.partitions holds."""

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


class TxnOffsetCommitResponseTopic(Message):
    """What TxnOffsetCommitResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (TxnOffsetCommitResponsePartition,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Message):
    """Kafka's TxnOffsetCommitResponse, versions 0-5."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 28
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("topics", (TxnOffsetCommitResponseTopic,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
