"""The time of a running node: the wall clock in milliseconds, but it never goes back."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Follows the wall clock forward at once. When somebody sets the wall clock back it goes on, at half speed, until
    the two meet: standing still instead would stop every timer of the node for as long as the clock was set back.
    """

    __slots__ = ("_last_monotonic_ns", "_last_ns", "_monotonic_ns", "_wall_ns")

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._last_ns = wall_ns()
        self._last_monotonic_ns = monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        wall_ns = self._wall_ns()
        monotonic_ns = self._monotonic_ns()
        if wall_ns >= self._last_ns:
            self._last_ns = wall_ns
        else:
            self._last_ns += (monotonic_ns - self._last_monotonic_ns) // 2
        self._last_monotonic_ns = monotonic_ns
        return self._last_ns // 1_000_000
