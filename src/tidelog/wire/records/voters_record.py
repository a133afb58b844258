"""VotersRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Endpoint(Message):
    """What Voter.endpoints holds."""

    __slots__ = ("host", "name", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "uint16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class KRaftVersionFeature(Message):
    """What Voter.kraft_version_feature holds."""

    __slots__ = ("max_supported_version", "min_supported_version")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("min_supported_version", "int16", "0+", "", -1, "", 0, None),
        ("max_supported_version", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class Voter(Message):
    """What VotersRecord.voters holds."""

    __slots__ = ("endpoints", "kraft_version_feature", "voter_directory_id", "voter_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("voter_id", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("endpoints", (Endpoint,), "0+", "", -1, "", (), None),
        ("kraft_version_feature", KRaftVersionFeature, "0+", "", -1, "", KRaftVersionFeature, None),
    )

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        endpoints: list[Endpoint] = EMPTY,
        kraft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is EMPTY else endpoints
        self.kraft_version_feature = KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature


class VotersRecord(Message):
    """Kafka's VotersRecord, versions 0."""

    __slots__ = ("version", "voters")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("version", "int16", "0+", "", -1, "", 0, None),
        ("voters", (Voter,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[Voter] = EMPTY,
    ) -> None:
        self.version = version
        self.voters = [] if voters is EMPTY else voters
