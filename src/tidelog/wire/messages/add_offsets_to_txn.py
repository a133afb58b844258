"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class AddOffsetsToTxnRequest(Message):
    """Kafka's AddOffsetsToTxnRequest, versions 0-4."""

    __slots__ = ("group_id", "producer_epoch", "producer_id", "transactional_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 25
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "0+", "", -1, "", "", None),
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("producer_epoch", "int16", "0+", "", -1, "", 0, None),
        ("group_id", "string", "0+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponse(Message):
    """Kafka's AddOffsetsToTxnResponse, versions 0-4."""

    __slots__ = ("error_code", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 25
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
