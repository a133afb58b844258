"""How long to go on trying, and how long to pause between two tries."""

from __future__ import annotations

import random
import time

from tidelog.errors import ErrorCode, KafkaError

FIRST_PAUSE_MS = 20
LONGEST_PAUSE_MS = 500


class Deadline:
    """A moment after which trying again is over; pauses double from 20 to 500 ms, spread by chance."""

    __slots__ = ("_at", "_pause_ms", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._at = time.monotonic() + timeout_ms / 1000
        self._pause_ms = FIRST_PAUSE_MS

    @property
    def remaining_ms(self) -> int:
        """Milliseconds left, never below 0."""
        return max(0, int((self._at - time.monotonic()) * 1000))

    @property
    def passed(self) -> bool:
        """Whether it is too late."""
        return time.monotonic() >= self._at

    def pause(self, error: KafkaError) -> None:
        """Wait a little before the next try, or raise `error` when there is no time for one."""
        pause_ms = min(self._pause_ms * random.uniform(0.8, 1.2), LONGEST_PAUSE_MS)  # noqa: S311  # not a secret
        if pause_ms >= self.remaining_ms:
            raise error
        time.sleep(pause_ms / 1000)
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)

    def progress(self) -> None:
        """Something worked: the time and the pauses start anew."""
        self._at = time.monotonic() + self.timeout_ms / 1000
        self._pause_ms = FIRST_PAUSE_MS


def error_of(code: int, message: str | None = None) -> KafkaError:
    """The error for a code of an answer; a code from a newer Kafka than ours counts as an unknown one."""
    try:
        return KafkaError(ErrorCode(code), message or "")
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"error code {code}")


def raise_for(code: int, message: str | None = None) -> None:
    """Raise unless the code is NONE."""
    if code:
        raise error_of(code, message)
