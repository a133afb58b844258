"""One thread that waits for sockets, timers and helpers, and calls whoever is concerned.

A turn: wait; call every socket that is ready; run what asked to go on (`again`); hear the helpers that called `wake`;
run due timers; call `at_turn_end`, where answers of the whole turn are written together. Everything but `wake` belongs
to the loop's own thread.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from contextlib import suppress

from tidelog.outbox import Timer
from tidelog.runtime.clock import Clock
from tidelog.runtime.polling import READ, WRITE, Ready, best_poller

__all__ = ["READ", "WRITE", "Loop", "Ready"]

LONGEST_WAIT_MS = 60_000


class Loop:
    """The event loop of a process."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.now_ms = clock.now_ms()
        """The time at the start of this turn's work: good enough for time-outs, and free."""
        self.at_turn_end: list[Callable[[], None]] = []
        self.on_wake: list[Callable[[], None]] = []
        """Called in the turn after a `wake`, each of them: they look for what their helpers left."""
        self.next_deadline_ms: Callable[[], int | None] = lambda: None
        """When the loop must wake up at the latest for the sake of its owner, who looks at the time at turn end."""
        self._poller = best_poller()
        self._timers: list[tuple[int, int, Timer]] = []
        self._timer_number = 0
        self._again: list[Callable[[], None]] = []
        self._running = False
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._poller.register(self._wake_reader, READ, self._woken)

    # --- sockets ---

    def watch(self, fd: int, events: int, ready: Ready) -> None:
        """Call `ready` whenever the descriptor is."""
        self._poller.register(fd, events, ready)

    def rewatch(self, fd: int, before: int, events: int, ready: Ready) -> None:
        """Wait for other events of a descriptor than before, where 0 is none."""
        if not events:
            self._poller.unregister(fd)
        elif before:
            self._poller.modify(fd, events, ready)
        else:
            self._poller.register(fd, events, ready)

    def unwatch(self, fd: int) -> None:
        """Stop waiting for a descriptor; before it is closed."""
        self._poller.unregister(fd)

    # --- time and helpers ---

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back in the first turn after the delay."""
        timer = Timer(self.clock.now_ms() + delay_ms, callback)
        self._timer_number += 1
        heapq.heappush(self._timers, (timer.at_ms, self._timer_number, timer))
        return timer

    def again(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn, which will not wait: there was more to do than is fair in one turn."""
        self._again.append(callback)

    def wake(self) -> None:
        """Make the loop call `on_wake`. Safe from any thread and from a signal handler."""
        with suppress(BlockingIOError):  # full: it will wake up anyway
            os.write(self._wake_writer, b"\0")

    def stop(self) -> None:
        """End `run` after this turn."""
        self._running = False

    # --- running ---

    def run(self) -> None:
        """Turn until `stop`."""
        self._running = True
        while self._running:
            self.turn()

    def turn(self, longest_wait_ms: int = LONGEST_WAIT_MS) -> None:
        """Wait for something to happen, at most so long, and do all of it."""
        found = self._poller.wait(self._wait_seconds(longest_wait_ms))
        self.now_ms = self.clock.now_ms()
        for ready, events in found:
            ready(events)
        if self._again:
            again, self._again = self._again, []
            for callback in again:
                callback()
        if self._timers and self._timers[0][0] <= self.now_ms:
            self._run_timers()
        for callback in self.at_turn_end:
            callback()

    def close(self) -> None:
        """Give back what the loop itself holds."""
        self._poller.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _wait_seconds(self, longest_wait_ms: int) -> float:
        if self._again:
            return 0
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        deadline_ms = self.next_deadline_ms()
        if timers and (deadline_ms is None or timers[0][0] < deadline_ms):
            deadline_ms = timers[0][0]
        if deadline_ms is None:
            return longest_wait_ms / 1000
        return min(max(deadline_ms - self.clock.now_ms(), 0), longest_wait_ms) / 1000

    def _run_timers(self) -> None:
        due: list[Timer] = []
        while self._timers and self._timers[0][0] <= self.now_ms:
            due.append(heapq.heappop(self._timers)[2])
        for timer in due:
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()

    def _woken(self, events: int) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_reader, 4096)
        for callback in self.on_wake:
            callback()
