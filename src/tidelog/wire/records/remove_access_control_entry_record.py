"""RemoveAccessControlEntryRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class RemoveAccessControlEntryRecord(Message):
    """Kafka's RemoveAccessControlEntryRecord, versions 0."""

    __slots__ = ("id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 19
    FIELDS: ClassVar[tuple[Field, ...]] = (("id", "uuid", "0+", "", -1, "", ZERO_UUID, None),)

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
    ) -> None:
        self.id = id
