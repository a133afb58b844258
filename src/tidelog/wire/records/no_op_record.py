"""NoOpRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class NoOpRecord(Message):
    """Kafka's NoOpRecord, versions 0."""

    __slots__ = ()
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 20
    FIELDS: ClassVar[tuple[Field, ...]] = ()
