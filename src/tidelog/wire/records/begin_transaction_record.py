"""BeginTransactionRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class BeginTransactionRecord(Message):
    """Kafka's BeginTransactionRecord, versions 0."""

    __slots__ = ("name",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 23
    FIELDS: ClassVar[tuple[Field, ...]] = (("name", "string", "0+", "0+", 0, "0+", None, None),)

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name = name
