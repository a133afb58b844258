"""CreateTopicsRequest and CreateTopicsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class CreatableReplicaAssignment(Message):
    """What CreatableTopic.assignments holds."""

    __slots__ = ("broker_ids", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("broker_ids", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatableTopicConfig(Message):
    """What CreatableTopic.configs holds."""

    __slots__ = ("name", "value")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("value", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    """What CreateTopicsRequest.topics holds."""

    __slots__ = ("assignments", "configs", "name", "num_partitions", "replication_factor")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("num_partitions", "int32", "0+", "", -1, "", 0, None),
        ("replication_factor", "int16", "0+", "", -1, "", 0, None),
        ("assignments", (CreatableReplicaAssignment,), "0+", "", -1, "", (), None),
        ("configs", (CreatableTopicConfig,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is EMPTY else assignments
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsRequest(Message):
    """Kafka's CreateTopicsRequest, versions 2-7."""

    __slots__ = ("timeout_ms", "topics", "validate_only")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_VERSIONS: ClassVar[str] = "5+"
    API_KEY: ClassVar[int] = 19
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", (CreatableTopic,), "0+", "", -1, "", (), None),
        ("timeout_ms", "int32", "0+", "", -1, "", 60000, None),
        ("validate_only", "bool", "1+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Message):
    """What CreatableTopicResult.configs holds."""

    __slots__ = ("config_source", "is_sensitive", "name", "read_only", "value")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "5+", "", -1, "", "", None),
        ("value", "string", "5+", "5+", -1, "", "", None),
        ("read_only", "bool", "5+", "", -1, "", False, None),
        ("config_source", "int8", "5+", "", -1, "", -1, None),
        ("is_sensitive", "bool", "5+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    """What CreateTopicsResponse.topics holds."""

    __slots__ = (
        "configs",
        "error_code",
        "error_message",
        "name",
        "num_partitions",
        "replication_factor",
        "topic_config_error_code",
        "topic_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("topic_id", "uuid", "7+", "", -1, "", ZERO_UUID, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "1+", "0+", -1, "", "", None),
        ("topic_config_error_code", "int16", "5+", "", 0, "5+", 0, None),
        ("num_partitions", "int32", "5+", "", -1, "", -1, None),
        ("replication_factor", "int16", "5+", "", -1, "", -1, None),
        ("configs", (CreatableTopicConfigs,), "5+", "5+", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsResponse(Message):
    """Kafka's CreateTopicsResponse, versions 2-7."""

    __slots__ = ("throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_VERSIONS: ClassVar[str] = "5+"
    API_KEY: ClassVar[int] = 19
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "2+", "", -1, "", 0, None),
        ("topics", (CreatableTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
