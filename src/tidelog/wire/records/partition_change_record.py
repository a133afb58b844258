"""PartitionChangeRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class PartitionChangeRecord(Message):
    """Kafka's PartitionChangeRecord, versions 0-2."""

    __slots__ = (
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "isr",
        "last_known_elr",
        "leader",
        "leader_recovery_state",
        "partition_id",
        "removing_replicas",
        "replicas",
        "topic_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_id", "int32", "0+", "", -1, "", -1, None),
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("isr", "[]int32", "0+", "0+", 0, "0+", None, None),
        ("leader", "int32", "0+", "", 1, "0+", -2, None),
        ("replicas", "[]int32", "0+", "0+", 2, "0+", None, None),
        ("removing_replicas", "[]int32", "0+", "0+", 3, "0+", None, None),
        ("adding_replicas", "[]int32", "0+", "0+", 4, "0+", None, None),
        ("leader_recovery_state", "int8", "0+", "", 5, "0+", -1, None),
        ("directories", "[]uuid", "1+", "1+", 8, "1+", None, None),
        ("eligible_leader_replicas", "[]int32", "2+", "2+", 6, "2+", None, None),
        ("last_known_elr", "[]int32", "2+", "2+", 7, "2+", None, None),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[bytes] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
