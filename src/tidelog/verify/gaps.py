"""How long nothing was acknowledged: per partition, and the longest for each fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NOTED_MS = 50
"""Shorter silences are the workload's own rhythm and are not kept."""

STILL_ACKNOWLEDGED_MS = 200
"""So long after a fault answers may still arrive that were on their way."""


class Gap(NamedTuple):
    """A silence between two acknowledgements of one partition."""

    partition: int
    start_ms: int
    end_ms: int

    @property
    def length_ms(self) -> int:
        """How long it was."""
        return self.end_ms - self.start_ms


class Gaps:
    """Takes note of acknowledgements as they come."""

    def __init__(self) -> None:
        self._last_ms: dict[int, int] = {}
        self._gaps: list[Gap] = []

    def acknowledged(self, partition: int, now_ms: int) -> None:
        """One record more."""
        last_ms = self._last_ms.get(partition, now_ms)
        if now_ms - last_ms >= NOTED_MS:
            self._gaps.append(Gap(partition, last_ms, now_ms))
        self._last_ms[partition] = now_ms

    def silent_since(self) -> int | None:
        """Since when the partition that is silent longest has been so; None before the first acknowledgement."""
        return min(self._last_ms.values(), default=None)

    def longest_within(self, moments_ms: Sequence[int], end_ms: int) -> list[Gap | None]:
        """For each moment of a fault the longest gap that is its own; `end_ms` closes gaps that still go on.

        A gap belongs to the first fault that came while it lasted, else to the last one before it.
        """
        found: list[Gap | None] = [None] * len(moments_ms)
        unfinished = [Gap(partition, last_ms, end_ms) for partition, last_ms in self._last_ms.items()]
        for gap in [*self._gaps, *(gap for gap in unfinished if gap.length_ms >= NOTED_MS)]:
            earliest_ms = gap.start_ms - STILL_ACKNOWLEDGED_MS
            during = [index for index, moment_ms in enumerate(moments_ms) if earliest_ms <= moment_ms < gap.end_ms]
            before = [index for index, moment_ms in enumerate(moments_ms) if moment_ms < gap.start_ms]
            index = during[0] if during else before[-1] if before else None
            if index is None:
                continue
            best = found[index]
            if best is None or gap.length_ms > best.length_ms:
                found[index] = gap
        return found
