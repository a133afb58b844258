"""Offsets that consumers were sent records from lately: who asks again for the same may have found them damaged.

What leaves a node is not looked at, and nothing in the protocol lets a consumer say that a checksum was wrong: it asks
again, for ever. So what is read again is looked at, once at the second time, and again at the fourth, the eighth and so
on: several consumers that read the same records cost little.
"""

from __future__ import annotations

MOST_REMEMBERED = 16
"""Offsets of one partition."""


class ReadAgain:
    """Of one replica: where answers to consumers began, and how often."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        """By offset, the one asked for last at the end. Invariant: at most MOST_REMEMBERED."""

    def is_due(self, offset: int) -> bool:
        """Note that records are sent from here; whether to look at them now."""
        times = self._times.pop(offset, 0) + 1
        self._times[offset] = times
        if len(self._times) > MOST_REMEMBERED:
            del self._times[next(iter(self._times))]
        return times > 1 and times & (times - 1) == 0
