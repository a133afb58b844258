"""PartitionRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class PartitionRecord(Message):
    """Kafka's PartitionRecord, versions 0-2."""

    __slots__ = (
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition_epoch",
        "partition_id",
        "removing_replicas",
        "replicas",
        "topic_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_id", "int32", "0+", "", -1, "", -1, None),
        ("topic_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("replicas", "[]int32", "0+", "", -1, "", (), None),
        ("isr", "[]int32", "0+", "", -1, "", (), None),
        ("removing_replicas", "[]int32", "0+", "", -1, "", (), None),
        ("adding_replicas", "[]int32", "0+", "", -1, "", (), None),
        ("leader", "int32", "0+", "", -1, "", -1, None),
        ("leader_recovery_state", "int8", "0+", "", 0, "0+", 0, None),
        ("leader_epoch", "int32", "0+", "", -1, "", -1, None),
        ("partition_epoch", "int32", "0+", "", -1, "", -1, None),
        ("directories", "[]uuid", "1+", "", -1, "", (), None),
        ("eligible_leader_replicas", "[]int32", "2+", "2+", 1, "2+", None, None),
        ("last_known_elr", "[]int32", "2+", "2+", 2, "2+", None, None),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        replicas: list[int] = EMPTY,
        isr: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is EMPTY else replicas
        self.isr = [] if isr is EMPTY else isr
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is EMPTY else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
