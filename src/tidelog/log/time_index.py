"""`.timeindex`: where in a segment to start looking for a time.

An entry is (timestamp, last offset of the first batch with it - the segment's base offset), twelve bytes: nothing up to
that batch is newer. The last entry of a closed segment is its newest timestamp.
"""

from __future__ import annotations

from struct import Struct

from tidelog.log.index_file import IndexFile
from tidelog.storage import Storage

_LAYOUT = Struct(">qi")
_TIMESTAMP, _OFFSET = 0, 1
NO_TIMESTAMP = -1


class TimeIndex(IndexFile):
    """The time index of one segment."""

    __slots__ = ("base_offset",)

    def __init__(self, storage: Storage, path: str, base_offset: int) -> None:
        super().__init__(storage, path, _LAYOUT, ("q", "i"))
        self.base_offset = base_offset

    def add(self, timestamp: int, last_offset: int) -> None:
        """Note the newest timestamp so far; nothing to do when it has not moved since the last entry."""
        if timestamp > self.newest[0]:
            self.append(timestamp, last_offset - self.base_offset)

    @property
    def newest(self) -> tuple[int, int]:
        """The last entry as (timestamp, offset); (-1, the base offset) when there is none."""
        last = self.last
        return (last[_TIMESTAMP], last[_OFFSET] + self.base_offset) if last else (NO_TIMESTAMP, self.base_offset)

    def offset_for(self, timestamp: int) -> int:
        """An offset before which everything is older than `timestamp`."""
        entry = self.floor(_TIMESTAMP, timestamp)
        return entry[_OFFSET] + self.base_offset if entry is not None else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Drop the entries that point at `offset` or after it."""
        self.truncate(self.count_below(_OFFSET, offset - self.base_offset))

    @staticmethod
    def capacity(index_bytes: int) -> int:
        """How many entries a segment may have before it must roll; one more is kept for its closing."""
        return index_bytes // _LAYOUT.size - 1
