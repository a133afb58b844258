"""DelegationTokenRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DelegationTokenRecord(Message):
    """Kafka's DelegationTokenRecord, versions 0."""

    __slots__ = (
        "expiration_timestamp",
        "issue_timestamp",
        "max_timestamp",
        "owner",
        "renewers",
        "requester",
        "token_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 10
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("owner", "string", "0+", "", -1, "", "", None),
        ("requester", "string", "0+", "", -1, "", "", None),
        ("renewers", "[]string", "0+", "", -1, "", (), None),
        ("issue_timestamp", "int64", "0+", "", -1, "", 0, None),
        ("max_timestamp", "int64", "0+", "", -1, "", 0, None),
        ("expiration_timestamp", "int64", "0+", "", -1, "", 0, None),
        ("token_id", "string", "0+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = EMPTY,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is EMPTY else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
