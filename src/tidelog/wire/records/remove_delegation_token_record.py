"""RemoveDelegationTokenRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class RemoveDelegationTokenRecord(Message):
    """Kafka's RemoveDelegationTokenRecord, versions 0."""

    __slots__ = ("token_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 26
    FIELDS: ClassVar[tuple[Field, ...]] = (("token_id", "string", "0+", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        token_id: str = "",
    ) -> None:
        self.token_id = token_id
