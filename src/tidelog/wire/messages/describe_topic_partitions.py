"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class TopicRequest(Message):
    """What DescribeTopicPartitionsRequest.topics holds."""

    __slots__ = ("name",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("name", "string", "0+", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeTopicPartitionsRequestCursor(Message):
    """What DescribeTopicPartitionsRequest.cursor holds."""

    __slots__ = ("partition_index", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    """Kafka's DescribeTopicPartitionsRequest, versions 0."""

    __slots__ = ("cursor", "response_partition_limit", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 75
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", (TopicRequest,), "0+", "", -1, "", (), None),
        ("response_partition_limit", "int32", "0+", "", -1, "", 2000, None),
        ("cursor", DescribeTopicPartitionsRequestCursor, "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequestCursor | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    """What DescribeTopicPartitionsResponseTopic.partitions holds."""

    __slots__ = (
        "eligible_leader_replicas",
        "error_code",
        "isr_nodes",
        "last_known_elr",
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
        ("leader_epoch", "int32", "0+", "", -1, "", -1, None),
        ("replica_nodes", "[]int32", "0+", "", -1, "", (), None),
        ("isr_nodes", "[]int32", "0+", "", -1, "", (), None),
        ("eligible_leader_replicas", "[]int32", "0+", "0+", -1, "", None, None),
        ("last_known_elr", "[]int32", "0+", "0+", -1, "", None, None),
        ("offline_replicas", "[]int32", "0+", "", -1, "", (), None),
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
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    """What DescribeTopicPartitionsResponse.topics holds."""

    __slots__ = ("error_code", "is_internal", "name", "partitions", "topic_authorized_operations", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("name", "string", "0+", "0+", -1, "", "", None),
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("is_internal", "bool", "0+", "", -1, "", False, None),
        ("partitions", (DescribeTopicPartitionsResponsePartition,), "0+", "", -1, "", (), None),
        ("topic_authorized_operations", "int32", "0+", "", -1, "", -2147483648, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class DescribeTopicPartitionsResponseCursor(Message):
    """What DescribeTopicPartitionsResponse.next_cursor holds."""

    __slots__ = ("partition_index", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Message):
    """Kafka's DescribeTopicPartitionsResponse, versions 0."""

    __slots__ = ("next_cursor", "throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 75
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("topics", (DescribeTopicPartitionsResponseTopic,), "0+", "", -1, "", (), None),
        ("next_cursor", DescribeTopicPartitionsResponseCursor, "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: DescribeTopicPartitionsResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.next_cursor = next_cursor
