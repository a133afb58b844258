"""SnapshotHeaderRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class SnapshotHeaderRecord(Message):
    """Kafka's SnapshotHeaderRecord, versions 0."""

    __slots__ = ("last_contained_log_timestamp", "version")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("version", "int16", "0+", "", -1, "", 0, None),
        ("last_contained_log_timestamp", "int64", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
