"""FenceBrokerRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class FenceBrokerRecord(Message):
    """Kafka's FenceBrokerRecord, versions 0."""

    __slots__ = ("epoch", "id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 7
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("id", "int32", "0+", "", -1, "", 0, None),
        ("epoch", "int64", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
