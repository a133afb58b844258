"""ProducerIdsRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ProducerIdsRecord(Message):
    """Kafka's ProducerIdsRecord, versions 0."""

    __slots__ = ("broker_epoch", "broker_id", "next_producer_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 15
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
        ("next_producer_id", "int64", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id
