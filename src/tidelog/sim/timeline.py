"""Simulated time: one queue of everything that is to happen, ordered by time and then by the order it was put there."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tidelog.outbox import Chance

Entry = tuple[int, int, Callable[[], None]]
"""When, its number, and what happens."""
SPAN_MS = 256


class Timeline:
    """What is to happen, what time it is, and the chance that decides; a seed makes all of it.

    Most of what is set for later never matters any more when its time comes, and there is much of it: timeouts. So only
    the next span of time is kept in order; what comes after waits, unsorted, in spans of its own.
    """

    def __init__(self, seed: int, start_ms: int) -> None:
        self.chance = Chance(seed)
        self.now_ms = start_ms
        self.least_delay_ms = 0
        self.most_delay_ms = 2
        self._near: list[Entry] = []
        """A heap. Invariant: all of it is before `_near_end_ms`, and all of `_far` is not."""
        self._near_end_ms = start_ms
        self._far: dict[int, list[Entry]] = {}
        """By the number of their span."""
        self._next_number = 1

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Put something into the queue."""
        number = self._next_number
        self._next_number = number + 1
        at_ms = max(at_ms, self.now_ms)
        if at_ms < self._near_end_ms:
            heapq.heappush(self._near, (at_ms, number, action))
        else:
            self._far.setdefault(at_ms // SPAN_MS, []).append((at_ms, number, action))

    def run_until(self, condition: Callable[[], bool], within_ms: int = 60_000) -> bool:
        """Let things happen until the condition holds; False when it did not within the time."""
        deadline_ms = self.now_ms + within_ms
        near = self._near
        while not condition():
            if not (near or self._bring_near()) or near[0][0] > deadline_ms:
                self.now_ms = max(self.now_ms, deadline_ms)
                return condition()
            self.now_ms, _, action = heapq.heappop(near)
            action()
        return True

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        deadline_ms = self.now_ms + duration_ms
        near, pop = self._near, heapq.heappop
        while (near or self._bring_near()) and near[0][0] <= deadline_ms:
            self.now_ms, _, action = pop(near)
            action()
        self.now_ms = max(self.now_ms, deadline_ms)

    def _bring_near(self) -> bool:
        """Nothing is near: go on to the next span in which something is to happen; False when there is none."""
        if not self._far:
            return False
        span = min(self._far)
        self._near += self._far.pop(span)
        heapq.heapify(self._near)
        self._near_end_ms = (span + 1) * SPAN_MS
        return True

    def _delay_ms(self) -> int:
        """How long something small takes this time."""
        return self.least_delay_ms + self.chance.below(self.most_delay_ms - self.least_delay_ms + 1)

    def _number(self) -> int:
        number = self._next_number
        self._next_number = number + 1
        return number
