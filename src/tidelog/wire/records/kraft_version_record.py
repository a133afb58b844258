"""KRaftVersionRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class KRaftVersionRecord(Message):
    """Kafka's KRaftVersionRecord, versions 0."""

    __slots__ = ("kraft_version", "version")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("version", "int16", "0+", "", -1, "", 0, None),
        ("kraft_version", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        kraft_version: int = 0,
    ) -> None:
        self.version = version
        self.kraft_version = kraft_version
