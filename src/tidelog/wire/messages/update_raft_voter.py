"""UpdateRaftVoterRequest and UpdateRaftVoterResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Listener(Message):
    """What UpdateRaftVoterRequest.listeners holds."""

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
    """What UpdateRaftVoterRequest.kraft_version_feature holds."""

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


class UpdateRaftVoterRequest(Message):
    """Kafka's UpdateRaftVoterRequest, versions 0."""

    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "kraft_version_feature",
        "listeners",
        "voter_directory_id",
        "voter_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 82
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", "", None),
        ("current_leader_epoch", "int32", "0+", "", -1, "", 0, None),
        ("voter_id", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("listeners", (Listener,), "0+", "", -1, "", (), None),
        ("kraft_version_feature", KRaftVersionFeature, "0+", "", -1, "", KRaftVersionFeature, None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        kraft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.kraft_version_feature = KRaftVersionFeature() if kraft_version_feature is None else kraft_version_feature


class CurrentLeader(Message):
    """What UpdateRaftVoterResponse.current_leader holds."""

    __slots__ = ("host", "leader_epoch", "leader_id", "port")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("leader_id", "int32", "0+", "", -1, "", -1, None),
        ("leader_epoch", "int32", "0+", "", -1, "", -1, None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port


class UpdateRaftVoterResponse(Message):
    """Kafka's UpdateRaftVoterResponse, versions 0."""

    __slots__ = ("current_leader", "error_code", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 82
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("current_leader", CurrentLeader, "0+", "", 0, "0+", CurrentLeader, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = current_leader
