"""ConsumerGroupMemberMetadataKey and ConsumerGroupMemberMetadataValue.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, EMPTY_STRUCT, Field, Message


class ConsumerGroupMemberMetadataKey(Message):
    """Kafka's ConsumerGroupMemberMetadataKey, versions 0."""

    __slots__ = ("group_id", "member_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0", "", -1, "", "", None),
        ("member_id", "string", "0", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


class ClassicProtocol(Message):
    """What ClassicMemberMetadata.supported_protocols holds."""

    __slots__ = ("metadata", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("metadata", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Message):
    """What ConsumerGroupMemberMetadataValue.classic_member_metadata holds."""

    __slots__ = ("session_timeout_ms", "supported_protocols")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("session_timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("supported_protocols", (ClassicProtocol,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = EMPTY,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is EMPTY else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    """Kafka's ConsumerGroupMemberMetadataValue, versions 0."""

    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("instance_id", "string", "0+", "0+", -1, "", "", None),
        ("rack_id", "string", "0+", "0+", -1, "", "", None),
        ("client_id", "string", "0+", "", -1, "", "", None),
        ("client_host", "string", "0+", "", -1, "", "", None),
        ("subscribed_topic_names", "[]string", "0+", "", -1, "", (), None),
        ("subscribed_topic_regex", "string", "0+", "0+", -1, "", "", None),
        ("rebalance_timeout_ms", "int32", "0+", "", -1, "", -1, None),
        ("server_assignor", "string", "0+", "0+", -1, "", "", None),
        ("classic_member_metadata", ClassicMemberMetadata, "0+", "0+", 0, "0+", ClassicMemberMetadata, None),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = EMPTY_STRUCT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = (
            ClassicMemberMetadata() if classic_member_metadata is EMPTY_STRUCT else classic_member_metadata
        )
