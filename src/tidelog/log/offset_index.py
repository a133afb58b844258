"""`.index`: where in a segment to start looking for an offset.

An entry is (last offset of a batch - the segment's base offset, position of that batch), eight bytes.
"""

from __future__ import annotations

from struct import Struct

from tidelog.log.index_file import IndexFile
from tidelog.storage import Storage

_LAYOUT = Struct(">ii")
_OFFSET, _POSITION = 0, 1


class OffsetIndex(IndexFile):
    """The offset index of one segment."""

    __slots__ = ("base_offset",)

    def __init__(self, storage: Storage, path: str, base_offset: int) -> None:
        super().__init__(storage, path, _LAYOUT, ("i", "i"))
        self.base_offset = base_offset

    def add(self, last_offset: int, position: int) -> None:
        """Index the batch at `position`."""
        self.append(last_offset - self.base_offset, position)

    def position_for(self, offset: int) -> int:
        """A batch start at or before the batch that holds `offset`; the segment's start when nothing is nearer."""
        entry = self.floor(_OFFSET, offset - self.base_offset)
        return entry[_POSITION] if entry is not None else 0

    def batch_start_at_or_before(self, position: int) -> int:
        """The last indexed batch start up to `position`; 0 when there is none."""
        entry = self.floor(_POSITION, position)
        return entry[_POSITION] if entry is not None else 0

    def truncate_to(self, offset: int) -> None:
        """Drop the batches that hold `offset` or anything after it."""
        self.truncate(self.count_below(_OFFSET, offset - self.base_offset))

    @property
    def last_position(self) -> int:
        """The position of the newest entry; 0 when there is none."""
        return self.last[_POSITION] if self.last is not None else 0

    @staticmethod
    def capacity(index_bytes: int) -> int:
        """How many entries a segment may have before it must roll."""
        return index_bytes // _LAYOUT.size
