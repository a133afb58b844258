"""One machine's clock in simulated time: it may be wrong, run fast or slow, and jump."""

from __future__ import annotations


class Clock:
    """What a machine believes the time is. Rates are in parts per million, so that no float decides anything."""

    __slots__ = ("_base_local_ms", "_base_true_ms", "_rate_ppm")

    def __init__(self, true_ms: int) -> None:
        self._base_true_ms = true_ms
        self._base_local_ms = true_ms
        self._rate_ppm = 1_000_000

    def read(self, true_ms: int) -> int:
        """The local time at a true one."""
        return self._base_local_ms + (true_ms - self._base_true_ms) * self._rate_ppm // 1_000_000

    def when(self, local_ms: int) -> int:
        """The first true time at which this clock reads at least `local_ms`."""
        missing_ms = local_ms - self._base_local_ms
        return self._base_true_ms + -(-missing_ms * 1_000_000 // self._rate_ppm)

    def jump(self, true_ms: int, by_ms: int) -> None:
        """Somebody sets the clock."""
        self._base_local_ms, self._base_true_ms = self.read(true_ms) + by_ms, true_ms

    def run_at(self, true_ms: int, rate_ppm: int) -> None:
        """From here on it runs at another rate; 1,000,000 is right."""
        assert rate_ppm > 0, "a clock does not stand still or run backwards"
        self._base_local_ms, self._base_true_ms = self.read(true_ms), true_ms
        self._rate_ppm = rate_ppm
