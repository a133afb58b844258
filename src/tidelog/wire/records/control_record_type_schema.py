"""ControlRecordTypeSchema.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ControlRecordTypeSchema(Message):
    """Kafka's ControlRecordTypeSchema, versions 0."""

    __slots__ = ("type",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (("type", "int16", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type = type
