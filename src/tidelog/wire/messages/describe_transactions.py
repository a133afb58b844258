"""DescribeTransactionsRequest and DescribeTransactionsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DescribeTransactionsRequest(Message):
    """Kafka's DescribeTransactionsRequest, versions 0."""

    __slots__ = ("transactional_ids",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 65
    FIELDS: ClassVar[tuple[Field, ...]] = (("transactional_ids", "[]string", "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY else transactional_ids


class TopicData(Message):
    """What TransactionState.topics holds."""

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


class TransactionState(Message):
    """What DescribeTransactionsResponse.transaction_states holds."""

    __slots__ = (
        "error_code",
        "producer_epoch",
        "producer_id",
        "topics",
        "transaction_start_time_ms",
        "transaction_state",
        "transaction_timeout_ms",
        "transactional_id",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("transactional_id", "string", "0+", "", -1, "", "", None),
        ("transaction_state", "string", "0+", "", -1, "", "", None),
        ("transaction_timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("transaction_start_time_ms", "int64", "0+", "", -1, "", 0, None),
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("topics", (TopicData,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is EMPTY else topics


class DescribeTransactionsResponse(Message):
    """Kafka's DescribeTransactionsResponse, versions 0."""

    __slots__ = ("throttle_time_ms", "transaction_states")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 65
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("transaction_states", (TransactionState,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
