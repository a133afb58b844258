"""GroupMetadataKey and GroupMetadataValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class GroupMetadataKey(Message):
    """Kafka's GroupMetadataKey, versions 0."""

    __slots__ = ("group",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (("group", "string", "0", "", -1, "", "", None),)

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group = group


class MemberMetadata(Message):
    """What GroupMetadataValue.members holds."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "member_id",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("member_id", "string", "0+", "", -1, "", "", None),
        ("group_instance_id", "string", "3+", "3+", -1, "", None, None),
        ("client_id", "string", "0+", "", -1, "", "", None),
        ("client_host", "string", "0+", "", -1, "", "", None),
        ("rebalance_timeout", "int32", "1+", "", -1, "", -1, None),
        ("session_timeout", "int32", "0+", "", -1, "", 0, None),
        ("subscription", "bytes", "0+", "", -1, "", b"", None),
        ("assignment", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    """Kafka's GroupMetadataValue, versions 0-4."""

    __slots__ = ("current_state_timestamp", "generation", "leader", "members", "protocol", "protocol_type")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("protocol_type", "string", "0+", "", -1, "", "", None),
        ("generation", "int32", "0+", "", -1, "", 0, None),
        ("protocol", "string", "0+", "0+", -1, "", "", None),
        ("leader", "string", "0+", "0+", -1, "", "", None),
        ("current_state_timestamp", "int64", "2+", "", -1, "", -1, None),
        ("members", (MemberMetadata,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = EMPTY,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is EMPTY else members
