"""ConsumerGroupHeartbeatRequest and ConsumerGroupHeartbeatResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ConsumerGroupHeartbeatRequestTopicPartitions(Message):
    """What ConsumerGroupHeartbeatRequest.topic_partitions holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerGroupHeartbeatRequest(Message):
    """Kafka's ConsumerGroupHeartbeatRequest, versions 0-1."""

    __slots__ = (
        "group_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "topic_partitions",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 68
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("member_epoch", "int32", "0+", "", -1, "", 0, None),
        ("instance_id", "string", "0+", "0+", -1, "", None, None),
        ("rack_id", "string", "0+", "0+", -1, "", None, None),
        ("rebalance_timeout_ms", "int32", "0+", "", -1, "", -1, None),
        ("subscribed_topic_names", "[]string", "0+", "0+", -1, "", None, None),
        ("subscribed_topic_regex", "string", "1+", "1+", -1, "", None, None),
        ("server_assignor", "string", "0+", "0+", -1, "", None, None),
        ("topic_partitions", (ConsumerGroupHeartbeatRequestTopicPartitions,), "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions


class ConsumerGroupHeartbeatResponseTopicPartitions(Message):
    """What Assignment.topic_partitions holds."""

    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Message):
    """What ConsumerGroupHeartbeatResponse.assignment holds."""

    __slots__ = ("topic_partitions",)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_partitions", (ConsumerGroupHeartbeatResponseTopicPartitions,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    """Kafka's ConsumerGroupHeartbeatResponse, versions 0-1."""

    __slots__ = (
        "assignment",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "throttle_time_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 68
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
        ("member_id", "string", "0+", "0+", -1, "", None, None),
        ("member_epoch", "int32", "0+", "", -1, "", 0, None),
        ("heartbeat_interval_ms", "int32", "0+", "", -1, "", 0, None),
        ("assignment", Assignment, "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
