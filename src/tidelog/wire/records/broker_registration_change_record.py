"""BrokerRegistrationChangeRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class BrokerRegistrationChangeRecord(Message):
    """Kafka's BrokerRegistrationChangeRecord, versions 0-3."""

    __slots__ = ("broker_epoch", "broker_id", "cordoned_log_dirs", "fenced", "in_controlled_shutdown", "log_dirs")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 17
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", 0, None),
        ("fenced", "int8", "0+", "", 0, "0+", 0, None),
        ("in_controlled_shutdown", "int8", "1+", "", 1, "1+", 0, None),
        ("log_dirs", "[]uuid", "2+", "", 2, "2+", (), None),
        ("cordoned_log_dirs", "[]uuid", "3+", "3+", 3, "3+", None, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] = EMPTY,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
