"""Where readers were and what was written last: nearly every read starts and ends at a place known from one of these.

Consumers and followers read on from where their last read ended, and the high watermark is a recent end of the log.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from tidelog.log.segment import Segment

_RECENT_MAX = 512
"""Batches remembered at the end of the log: about as many as can wait for their followers at once."""
_BOOKMARKS_MAX = 32
"""Readers of older records that are remembered per log."""


class RecentBatches:
    """The last batches of the active segment, without a gap between them up to the log's end."""

    __slots__ = ("_base_offsets", "_last_offsets", "_positions")

    def __init__(self) -> None:
        self._base_offsets = array("q")
        """Invariant: this list and the next two are of equal length and rise."""
        self._last_offsets = array("q")
        self._positions = array("q")

    def note(self, base_offset: int, last_offset: int, position: int) -> None:
        """A batch was appended."""
        positions = self._positions
        if len(positions) >= _RECENT_MAX:
            half = _RECENT_MAX // 2
            del self._base_offsets[:half], self._last_offsets[:half], positions[:half]
        self._base_offsets.append(base_offset)
        self._last_offsets.append(last_offset)
        positions.append(position)

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and base offset of the first batch that reaches `offset`, when it is among these."""
        last_offsets = self._last_offsets
        if not last_offsets or offset < self._base_offsets[0]:
            return None
        index = bisect_left(last_offsets, offset)
        if index == len(last_offsets):
            return None
        return self._positions[index], self._base_offsets[index]

    def cut_before(self, start: int, limit: int) -> tuple[int, int] | None:
        """The last batch start up to `limit` and its offset, when the batch at `start` is among these."""
        positions = self._positions
        if not positions or start < positions[0]:
            return None
        index = bisect_right(positions, limit) - 1
        return positions[index], self._base_offsets[index]

    def clear(self) -> None:
        """Forget them: the log was cut or rolled."""
        del self._base_offsets[:], self._last_offsets[:], self._positions[:]


class Bookmarks:
    """Where reads ended that did not reach the end of the log, by the offset their readers will ask for next."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, tuple[Segment, int]] = {}

    def put(self, next_offset: int, segment: Segment, position: int) -> None:
        """A reader is about to ask for `next_offset`, the offset of the batch at `position`."""
        places = self._places
        if len(places) >= _BOOKMARKS_MAX and next_offset not in places:
            del places[next(iter(places))]
        places[next_offset] = (segment, position)

    def get(self, offset: int) -> tuple[Segment, int] | None:
        """Segment and position of the batch that begins with `offset`, when a read ended there."""
        return self._places.get(offset)

    def clear(self) -> None:
        """Forget them: segments were cut or replaced."""
        self._places.clear()
