"""ClearElrRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ClearElrRecord(Message):
    """Kafka's ClearElrRecord, versions 0."""

    __slots__ = ("topic_name",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 28
    FIELDS: ClassVar[tuple[Field, ...]] = (("topic_name", "string", "0+", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name
