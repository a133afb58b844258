"""RemoveRaftVoterRequest and RemoveRaftVoterResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import ZERO_UUID, Field, Message


class RemoveRaftVoterRequest(Message):
    """Kafka's RemoveRaftVoterRequest, versions 0."""

    __slots__ = ("cluster_id", "voter_directory_id", "voter_id")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 81
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("cluster_id", "string", "0+", "0+", -1, "", "", None),
        ("voter_id", "int32", "0+", "", -1, "", 0, None),
        ("voter_directory_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class RemoveRaftVoterResponse(Message):
    """Kafka's RemoveRaftVoterResponse, versions 0."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 81
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
