"""The segments of one log in the order of their offsets. There is always a newest one, which is appended to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tidelog.log.segment import Segment


class Segments:
    """A sorted list of segments. Invariant once a log is open: not empty, base offsets rise strictly."""

    __slots__ = ("_base_offsets", "_segments", "active")

    active: Segment
    """The newest."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments: list[Segment] = []
        self._base_offsets: list[int] = []
        for segment in segments:
            self.add(segment)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def base_offsets(self) -> list[int]:
        """Where each begins; not to be changed."""
        return self._base_offsets

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    def index_for(self, offset: int) -> int:
        """The index of the segment an offset is in or would be in; -1 when it is before all of them."""
        return bisect_right(self._base_offsets, offset) - 1

    def starting_with(self, offset: int) -> list[Segment]:
        """The segment an offset is in, and all after it."""
        return self._segments[max(0, self.index_for(offset)) :]

    def add(self, segment: Segment) -> None:
        """Add a newest segment."""
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def remove_first(self, count: int) -> None:
        """Drop the oldest ones; at least one must stay."""
        del self._segments[:count], self._base_offsets[:count]

    def replace(self, first: int, count: int, segment: Segment) -> None:
        """Put one segment where several were; never the newest."""
        self._segments[first : first + count] = [segment]
        self._base_offsets[first : first + count] = [segment.base_offset]

    def remove_last(self) -> None:
        """Drop the newest one."""
        self._segments.pop()
        self._base_offsets.pop()
        if self._segments:
            self.active = self._segments[-1]

    def clear(self) -> None:
        """Drop them all; one must be added next."""
        self._segments.clear()
        self._base_offsets.clear()
