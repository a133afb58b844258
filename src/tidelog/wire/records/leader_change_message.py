"""LeaderChangeMessage.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Voter(Message):
    """What LeaderChangeMessage.voters holds."""

    __slots__ = ("voter_directory_id", "voter_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("voter_id", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "1+", "", -1, "", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class LeaderChangeMessage(Message):
    """Kafka's LeaderChangeMessage, versions 0-1."""

    __slots__ = ("granting_voters", "leader_id", "version", "voters")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("version", "int16", "0+", "", -1, "", 0, None),
        ("leader_id", "int32", "0+", "", -1, "", 0, None),
        ("voters", (Voter,), "0+", "", -1, "", (), None),
        ("granting_voters", (Voter,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[Voter] = EMPTY,
        granting_voters: list[Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is EMPTY else voters
        self.granting_voters = [] if granting_voters is EMPTY else granting_voters
