"""DeleteTopicsRequest and DeleteTopicsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class DeleteTopicState(Message):
    """What DeleteTopicsRequest.topics holds."""

    __slots__ = ("name", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "6+", "6+", -1, "", None, None),
        ("topic_id", "uuid", "6+", "", -1, "", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    """Kafka's DeleteTopicsRequest, versions 1-6."""

    __slots__ = ("timeout_ms", "topic_names", "topics")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 20
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topics", (DeleteTopicState,), "6+", "", -1, "", (), None),
        ("topic_names", "[]string", "0-5", "", -1, "", (), None),
        ("timeout_ms", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = EMPTY,
        topic_names: list[str] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.topic_names = [] if topic_names is EMPTY else topic_names
        self.timeout_ms = timeout_ms


class DeletableTopicResult(Message):
    """What DeleteTopicsResponse.responses holds."""

    __slots__ = ("error_code", "error_message", "name", "topic_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "6+", -1, "", "", None),
        ("topic_id", "uuid", "6+", "", -1, "", ZERO_UUID, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "5+", "5+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    """Kafka's DeleteTopicsResponse, versions 1-6."""

    __slots__ = ("responses", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 20
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("responses", (DeletableTopicResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
