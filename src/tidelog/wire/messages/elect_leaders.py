"""ElectLeadersRequest and ElectLeadersResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TopicPartitions(Message):
    """What ElectLeadersRequest.topic_partitions holds."""

    __slots__ = ("partitions", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ElectLeadersRequest(Message):
    """Kafka's ElectLeadersRequest, versions 0-2."""

    __slots__ = ("election_type", "timeout_ms", "topic_partitions")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 43
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("election_type", "int8", "1+", "", -1, "", 0, None),
        ("topic_partitions", (TopicPartitions,), "0+", "0+", -1, "", (), None),
        ("timeout_ms", "int32", "0+", "", -1, "", 60000, None),
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Message):
    """What ReplicaElectionResult.partition_result holds."""

    __slots__ = ("error_code", "error_message", "partition_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_id", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    """What ElectLeadersResponse.replica_election_results holds."""

    __slots__ = ("partition_result", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partition_result", (PartitionResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is EMPTY else partition_result


class ElectLeadersResponse(Message):
    """Kafka's ElectLeadersResponse, versions 0-2."""

    __slots__ = ("error_code", "replica_election_results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 43
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "1+", "", -1, "", 0, None),
        ("replica_election_results", (ReplicaElectionResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY else replica_election_results
