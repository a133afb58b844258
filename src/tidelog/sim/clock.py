"""One machine's clock in simulated time: it may run fast or slow, and be set forward or back.

A node sees it as the runtime's clock shows it: never going back. Set back, it goes on at half speed until the time it
is set to has caught up with it.
"""

from __future__ import annotations

RIGHT_PPM = 1_000_000


class Clock:
    """What a node believes the time is. Rates are in parts per million, so that no float decides anything."""

    __slots__ = ("_ahead_ms", "_rate_ppm", "_shown_ms", "_true_ms", "_wall_ms")

    def __init__(self, true_ms: int) -> None:
        self._true_ms = true_ms
        """When the two below were noted."""
        self._wall_ms = true_ms
        self._shown_ms = true_ms
        """What the node is shown; never less than it was."""
        self._rate_ppm = RIGHT_PPM
        self._ahead_ms: int | None = 0
        """How far it is ahead, while it runs right and shows what it is set to; None else."""

    def read(self, true_ms: int) -> int:
        """The local time at a true one."""
        if self._ahead_ms is not None:
            return true_ms + self._ahead_ms
        passed_ms = true_ms - self._true_ms
        wall_ms = self._wall_ms + passed_ms * self._rate_ppm // RIGHT_PPM
        return max(wall_ms, self._shown_ms + passed_ms * self._rate_ppm // (2 * RIGHT_PPM))

    def is_slowed(self, true_ms: int) -> bool:
        """Whether it was set back and is still being waited for."""
        if self._ahead_ms is not None:
            return False
        return self.read(true_ms) > self._wall_ms + (true_ms - self._true_ms) * self._rate_ppm // RIGHT_PPM

    def when(self, local_ms: int) -> int:
        """The first true time at which this clock reads at least `local_ms`."""
        if self._ahead_ms is not None and local_ms >= self._wall_ms:
            return local_ms - self._ahead_ms
        by_wall_ms = -((self._wall_ms - local_ms) * RIGHT_PPM // self._rate_ppm)
        by_shown_ms = -((self._shown_ms - local_ms) * 2 * RIGHT_PPM // self._rate_ppm)
        return self._true_ms + min(by_wall_ms, by_shown_ms)

    def jump(self, true_ms: int, by_ms: int) -> None:
        """Somebody sets the clock."""
        self._note(true_ms)
        self._wall_ms += by_ms
        self._look()

    def run_at(self, true_ms: int, rate_ppm: int) -> None:
        """From here on it runs at another rate; 1,000,000 is right."""
        assert rate_ppm > 0, "a clock does not stand still or run backwards"
        self._note(true_ms)
        self._rate_ppm = rate_ppm
        self._look()

    def _look(self) -> None:
        is_plain = self._rate_ppm == RIGHT_PPM and self._wall_ms >= self._shown_ms
        self._ahead_ms = self._wall_ms - self._true_ms if is_plain else None

    def _note(self, true_ms: int) -> None:
        shown_ms = self.read(true_ms)
        self._wall_ms += (true_ms - self._true_ms) * self._rate_ppm // RIGHT_PPM
        self._shown_ms, self._true_ms = shown_ms, true_ms
