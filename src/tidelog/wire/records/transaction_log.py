"""TransactionLogKey and TransactionLogValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class TransactionLogKey(Message):
    """Kafka's TransactionLogKey, versions 0."""

    __slots__ = ("transactional_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (("transactional_id", "string", "0", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id


class PartitionsSchema(Message):
    """What TransactionLogValue.transaction_partitions holds."""

    __slots__ = ("partition_ids", "topic")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("topic", "string", "0+", "", -1, "", "", None),
        ("partition_ids", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is EMPTY else partition_ids


class TransactionLogValue(Message):
    """Kafka's TransactionLogValue, versions 0-1."""

    __slots__ = (
        "client_transaction_version",
        "next_producer_epoch",
        "next_producer_id",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "transaction_last_update_timestamp_ms",
        "transaction_partitions",
        "transaction_start_timestamp_ms",
        "transaction_status",
        "transaction_timeout_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("previous_producer_id", "int64", "1+", "", 0, "1+", -1, None),
        ("next_producer_id", "int64", "1+", "", 1, "1+", -1, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("next_producer_epoch", "int16", "1+", "", 3, "1+", -1, None),
        ("transaction_timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("transaction_status", "int8", "0+", "", -1, "", 0, None),
        ("transaction_partitions", (PartitionsSchema,), "0+", "0+", -1, "", (), None),
        ("transaction_last_update_timestamp_ms", "int64", "0+", "", -1, "", 0, None),
        ("transaction_start_timestamp_ms", "int64", "0+", "", -1, "", 0, None),
        ("client_transaction_version", "int16", "1+", "", 2, "1+", 0, None),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = EMPTY,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is EMPTY else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
