"""AddRaftVoterRequest and AddRaftVoterResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Listener(Message):
    """What AddRaftVoterRequest.listeners holds."""

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


class AddRaftVoterRequest(Message):
    """Kafka's AddRaftVoterRequest, versions 0-1."""

    __slots__ = ("ack_when_committed", "cluster_id", "listeners", "timeout_ms", "voter_directory_id", "voter_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 80
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", "", None),
        ("timeout_ms", "int32", "0+", "", -1, "", 0, None),
        ("voter_id", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("listeners", (Listener,), "0+", "", -1, "", (), None),
        ("ack_when_committed", "bool", "1+", "", -1, "", True, None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.ack_when_committed = ack_when_committed


class AddRaftVoterResponse(Message):
    """Kafka's AddRaftVoterResponse, versions 0-1."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 80
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
