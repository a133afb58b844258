"""AllocateProducerIdsRequest and AllocateProducerIdsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class AllocateProducerIdsRequest(Message):
    """Kafka's AllocateProducerIdsRequest, versions 0."""

    __slots__ = ("broker_epoch", "broker_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 67
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class AllocateProducerIdsResponse(Message):
    """Kafka's AllocateProducerIdsResponse, versions 0."""

    __slots__ = ("error_code", "producer_id_len", "producer_id_start", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 67
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("producer_id_start", "int64", "0+", "", -1, "", 0, None),
        ("producer_id_len", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
