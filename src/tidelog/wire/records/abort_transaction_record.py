"""AbortTransactionRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class AbortTransactionRecord(Message):
    """Kafka's AbortTransactionRecord, versions 0."""

    __slots__ = ("reason",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 25
    FIELDS: ClassVar[tuple[Field, ...]] = (("reason", "string", "0+", "0+", 0, "0+", None, None),)

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason = reason
