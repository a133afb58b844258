"""ZkMigrationStateRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class ZkMigrationStateRecord(Message):
    """Kafka's ZkMigrationStateRecord, versions 0."""

    __slots__ = ("zk_migration_state",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 21
    FIELDS: ClassVar[tuple[Field, ...]] = (("zk_migration_state", "int8", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state = zk_migration_state
