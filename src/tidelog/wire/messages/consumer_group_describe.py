"""ConsumerGroupDescribeRequest and ConsumerGroupDescribeResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class ConsumerGroupDescribeRequest(Message):
    """Kafka's ConsumerGroupDescribeRequest, versions 0-1."""

    __slots__ = ("group_ids", "include_authorized_operations")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 69
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_ids", "[]string", "0+", "", -1, "", (), None),
        ("include_authorized_operations", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations


class TopicPartitions(Message):
    """What Assignment.topic_partitions holds."""

    __slots__ = ("partitions", "topic_id", "topic_name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("topic_name", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Message):
    """What Member.assignment holds."""

    __slots__ = ("topic_partitions",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("topic_partitions", (TopicPartitions,), "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class Member(Message):
    """What DescribedGroup.members holds."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "member_type",
        "rack_id",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "target_assignment",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("instance_id", "string", "0+", "0+", -1, "", None, None),
        ("rack_id", "string", "0+", "0+", -1, "", None, None),
        ("member_epoch", "int32", "0+", "", -1, "", 0, None),
        ("client_id", "string", "0+", "", -1, "", "", None),
        ("client_host", "string", "0+", "", -1, "", "", None),
        ("subscribed_topic_names", "[]string", "0+", "", -1, "", (), None),
        ("subscribed_topic_regex", "string", "0+", "0+", -1, "", None, None),
        ("assignment", Assignment, "0+", "", -1, "", Assignment, None),
        ("target_assignment", Assignment, "0+", "", -1, "", Assignment, None),
        ("member_type", "int8", "1+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type = member_type


class DescribedGroup(Message):
    """What ConsumerGroupDescribeResponse.groups holds."""

    __slots__ = (
        "assignment_epoch",
        "assignor_name",
        "authorized_operations",
        "error_code",
        "error_message",
        "group_epoch",
        "group_id",
        "group_state",
        "members",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("group_state", "string", "0+", "", -1, "", "", None),
        ("group_epoch", "int32", "0+", "", -1, "", 0, None),
        ("assignment_epoch", "int32", "0+", "", -1, "", 0, None),
        ("assignor_name", "string", "0+", "", -1, "", "", None),
        ("members", (Member,), "0+", "", -1, "", (), None),
        ("authorized_operations", "int32", "0+", "", -1, "", -2147483648, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    """Kafka's ConsumerGroupDescribeResponse, versions 0-1."""

    __slots__ = ("groups", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 69
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("groups", (DescribedGroup,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups
