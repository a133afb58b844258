"""CreatePartitionsRequest and CreatePartitionsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class CreatePartitionsAssignment(Message):
    """What CreatePartitionsTopic.assignments holds."""

    __slots__ = ("broker_ids",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("broker_ids", "[]int32", "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatePartitionsTopic(Message):
    """What CreatePartitionsRequest.topics holds."""

    __slots__ = ("assignments", "count", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("count", "int32", "0+", "", -1, "", 0, None),
        ("assignments", (CreatePartitionsAssignment,), "0+", "0+", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY else assignments


class CreatePartitionsRequest(Message):
    """Kafka's CreatePartitionsRequest, versions 0-3."""

    __slots__ = ("timeout_ms", "topics", "validate_only")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 37
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", (CreatePartitionsTopic,), "0+", "", -1, "", (), None),
        ("timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("validate_only", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Message):
    """What CreatePartitionsResponse.results holds."""

    __slots__ = ("error_code", "error_message", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Message):
    """Kafka's CreatePartitionsResponse, versions 0-3."""

    __slots__ = ("results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 37
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("results", (CreatePartitionsTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
