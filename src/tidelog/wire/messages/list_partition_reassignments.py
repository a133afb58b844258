"""ListPartitionReassignmentsRequest and ListPartitionReassignmentsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ListPartitionReassignmentsTopics(Message):
    """What ListPartitionReassignmentsRequest.topics holds."""

    __slots__ = ("name", "partition_indexes")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partition_indexes", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    """Kafka's ListPartitionReassignmentsRequest, versions 0."""

    __slots__ = ("timeout_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 46
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("timeout_ms", "int32", "0+", "", -1, "", 60000, None),
        ("topics", (ListPartitionReassignmentsTopics,), "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Message):
    """What OngoingTopicReassignment.partitions holds."""

    __slots__ = ("adding_replicas", "partition_index", "removing_replicas", "replicas")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("replicas", "[]int32", "0+", "", -1, "", (), None),
        ("adding_replicas", "[]int32", "0+", "", -1, "", (), None),
        ("removing_replicas", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is EMPTY else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas


class OngoingTopicReassignment(Message):
    """What ListPartitionReassignmentsResponse.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", (OngoingPartitionReassignment,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListPartitionReassignmentsResponse(Message):
    """Kafka's ListPartitionReassignmentsResponse, versions 0."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 46
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
        ("topics", (OngoingTopicReassignment,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
