"""InitProducerIdRequest and InitProducerIdResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class InitProducerIdRequest(Message):
    """Kafka's InitProducerIdRequest, versions 0-6."""

    __slots__ = (
        "enable2_pc",
        "keep_prepared_txn",
        "producer_epoch",
        "producer_id",
        "transaction_timeout_ms",
        "transactional_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 22
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "0+", "0+", -1, "", "", None),
        ("transaction_timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("producer_id", "int64", "3+", "", -1, "", -1, None),
        ("producer_epoch", "int16", "3+", "", -1, "", -1, None),
        ("enable2_pc", "bool", "6+", "", -1, "", False, None),
        ("keep_prepared_txn", "bool", "6+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn


class InitProducerIdResponse(Message):
    """Kafka's InitProducerIdResponse, versions 0-6."""

    __slots__ = (
        "error_code",
        "ongoing_txn_producer_epoch",
        "ongoing_txn_producer_id",
        "producer_epoch",
        "producer_id",
        "throttle_time_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 22
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("producer_id", "int64", "0+", "", -1, "", -1, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("ongoing_txn_producer_id", "int64", "6+", "", -1, "", -1, None),
        ("ongoing_txn_producer_epoch", "int16", "6+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
