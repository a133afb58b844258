"""QuorumStateData.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Voter(Message):
    """What QuorumStateData.current_voters holds."""

    __slots__ = ("voter_id",)
    FIELDS: ClassVar[tuple[Field, ...]] = (("voter_id", "int32", "0", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        voter_id: int = 0,
    ) -> None:
        self.voter_id = voter_id


class QuorumStateData(Message):
    """Kafka's QuorumStateData, versions 0-1."""

    __slots__ = (
        "applied_offset",
        "cluster_id",
        "current_voters",
        "leader_epoch",
        "leader_id",
        "voted_directory_id",
        "voted_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0", "", -1, "", "", None),
        ("leader_id", "int32", "0+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "0+", "", -1, "", -1, None),
        ("voted_id", "int32", "0+", "", -1, "", -1, None),
        ("voted_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
        ("applied_offset", "int64", "0", "", -1, "", 0, None),
        ("current_voters", (Voter,), "0", "0", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[Voter] | None = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is EMPTY else current_voters
