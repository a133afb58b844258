"""EndTxnMarker.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class EndTxnMarker(Message):
    """Kafka's EndTxnMarker, versions 0."""

    __slots__ = ("coordinator_epoch",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (("coordinator_epoch", "int32", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
