"""BrokerHeartbeatRequest and BrokerHeartbeatResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class BrokerHeartbeatRequest(Message):
    """Kafka's BrokerHeartbeatRequest, versions 0-2."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "cordoned_log_dirs",
        "current_metadata_offset",
        "offline_log_dirs",
        "want_fence",
        "want_shut_down",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 63
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
        ("current_metadata_offset", "int64", "0+", "", -1, "", 0, None),
        ("want_fence", "bool", "0+", "", -1, "", False, None),
        ("want_shut_down", "bool", "0+", "", -1, "", False, None),
        ("offline_log_dirs", "[]uuid", "1+", "", 0, "1+", (), None),
        ("cordoned_log_dirs", "[]uuid", "2+", "2+", 1, "2+", None, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = EMPTY,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is EMPTY else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs


class BrokerHeartbeatResponse(Message):
    """Kafka's BrokerHeartbeatResponse, versions 0-2."""

    __slots__ = ("error_code", "is_caught_up", "is_fenced", "should_shut_down", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 63
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("is_caught_up", "bool", "0+", "", -1, "", False, None),
        ("is_fenced", "bool", "0+", "", -1, "", True, None),
        ("should_shut_down", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down
