"""AlterPartitionRequest and AlterPartitionResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class BrokerState(Message):
    """What PartitionData.new_isr_with_epochs holds."""

    __slots__ = ("broker_epoch", "broker_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "3+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "3+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class AlterPartitionRequestPartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = (
        "leader_epoch",
        "leader_recovery_state",
        "new_isr",
        "new_isr_with_epochs",
        "partition_epoch",
        "partition_index",
        "reason",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("new_isr", "[]int32", "0-2", "", -1, "", (), None),
        ("new_isr_with_epochs", (BrokerState,), "3+", "", -1, "", (), None),
        ("leader_recovery_state", "int8", "1+", "", -1, "", 0, None),
        ("partition_epoch", "int32", "0+", "", -1, "", 0, None),
        ("reason", "string", "2+", "", 10000, "2+", "", None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = EMPTY,
        new_isr_with_epochs: list[BrokerState] = EMPTY,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        reason: str = "",
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is EMPTY else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.reason = reason


class AlterPartitionRequestTopicData(Message):
    """What AlterPartitionRequest.topics holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "2+", "", -1, "", ZERO_UUID, None),
        ("partitions", (AlterPartitionRequestPartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterPartitionRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionRequest(Message):
    """Kafka's AlterPartitionRequest, versions 2-3."""

    __slots__ = ("broker_epoch", "broker_id", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 56
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
        ("topics", (AlterPartitionRequestTopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequestTopicData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is EMPTY else topics


class AlterPartitionResponsePartitionData(Message):
    """What TopicData.partitions holds."""

    __slots__ = (
        "error_code",
        "isr",
        "leader_epoch",
        "leader_id",
        "leader_recovery_state",
        "partition_epoch",
        "partition_index",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("isr", "[]int32", "0+", "", -1, "", (), None),
        ("leader_recovery_state", "int8", "1+", "", -1, "", 0, None),
        ("partition_epoch", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch


class AlterPartitionResponseTopicData(Message):
    """What AlterPartitionResponse.topics holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "2+", "", -1, "", ZERO_UUID, None),
        ("partitions", (AlterPartitionResponsePartitionData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterPartitionResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionResponse(Message):
    """Kafka's AlterPartitionResponse, versions 2-3."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 56
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("topics", (AlterPartitionResponseTopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponseTopicData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
