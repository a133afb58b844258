"""RemoveTopicRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class RemoveTopicRecord(Message):
    """Kafka's RemoveTopicRecord, versions 0."""

    __slots__ = ("topic_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id
