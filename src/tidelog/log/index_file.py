"""A sparse index on disk: entries of two columns, both rising, so that either can be searched by halving.

New entries stay in memory until there is a chunk of them, and the file is searched where it lies, some pages at a time:
a log costs the same few kilobytes however long it is. Nobody reads an index without checking what it points at, and
what fails the check is rebuilt from the segment.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from struct import Struct

from tidelog.errors import CorruptionError
from tidelog.storage import File, Storage

CHUNK_ENTRIES = 512
"""Entries kept in memory before they are written: one write for two megabytes of log at Kafka's default interval."""
_PAGE_ENTRIES = 128
"""Once this few entries are left to look at, they are read at once."""

Entry = tuple[int, int]


class IndexFile:
    """One index file and the entries that are not in it yet."""

    __slots__ = ("_columns", "_last", "_layout", "_written", "path", "storage")

    def __init__(self, storage: Storage, path: str, layout: Struct, typecodes: tuple[str, str]) -> None:
        self.storage = storage
        self.path = path
        self._layout = layout
        self._columns = (array(typecodes[0]), array(typecodes[1]))
        """Entries after the written ones. Invariant: of equal length."""
        self._written = -1
        """Entries in the file; -1 before anybody asked."""
        self._last: Entry | None = None

    # --- what is there ---

    @property
    def entry_count(self) -> int:
        """Entries, written or not."""
        return self._count_written() + len(self._columns[0])

    @property
    def unwritten_count(self) -> int:
        """Entries that are only in memory."""
        return len(self._columns[0])

    @property
    def last(self) -> Entry | None:
        """The newest entry."""
        if self._last is None and self._count_written():
            self._last = self._read_one(self._written - 1)
        return self._last

    def entry_from_end(self, number: int) -> Entry | None:
        """The newest entry is number 1; None when there are fewer."""
        slot = self.entry_count - number
        if slot < 0:
            return None
        if slot >= self._written:
            return self._columns[0][slot - self._written], self._columns[1][slot - self._written]
        return self._read_one(slot)

    def check(self) -> None:
        """Raise CorruptionError when the file cannot be an index: missing, torn, or ending in zeros.

        A broker of Apache Kafka that was killed leaves its index files at their full size, zeros after the last entry.
        """
        count = self._count_written()
        if count > 1 and self._read_one(0) >= self._read_one(count - 1):
            raise CorruptionError(f"{self.path} does not rise")

    # --- searching ---

    def floor(self, column: int, target: int) -> Entry | None:
        """The last entry whose `column` is at most `target`."""
        return self._search(column, target)[1]

    def count_below(self, column: int, target: int) -> int:
        """How many entries have a `column` less than `target`."""
        return self._search(column, target - 1)[0]

    def _search(self, column: int, target: int) -> tuple[int, Entry | None]:
        """How many entries have a `column` of at most `target`, and the last of them."""
        count = bisect_right(self._columns[column], target)
        if count:
            return self._count_written() + count, (self._columns[0][count - 1], self._columns[1][count - 1])
        if not self._count_written():
            return 0, None
        file = self._open()
        try:
            low, high = 0, self._written
            while high - low > _PAGE_ENTRIES:
                middle = (low + high) // 2
                if self._read(file, middle, 1)[0][column] <= target:
                    low = middle
                else:
                    high = middle
            page = self._read(file, low, high - low)
        finally:
            file.close()
        count = bisect_right(page, target, key=lambda entry: entry[column])
        return (low + count, page[count - 1]) if count else (0, None)

    # --- changing ---

    def append(self, first: int, second: int) -> None:
        """Add an entry; the caller calls `write_out` when `unwritten_count` has reached CHUNK_ENTRIES."""
        self._columns[0].append(first)
        self._columns[1].append(second)
        self._last = (first, second)

    def write_out(self) -> None:
        """Write what is in memory; on a StorageError it is all still in memory."""
        first, second = self._columns
        if not first:
            return
        written = self._count_written()
        pack = self._layout.pack
        data = b"".join(map(pack, first, second))
        file = self.storage.open(self.path, create=True)
        try:
            file.append(data)
        finally:
            file.close()
        self._written = written + len(first)
        del first[:], second[:]

    def complete(self) -> None:
        """Write all there is, and have a file even of nothing: Kafka expects one beside every segment it is given."""
        self.write_out()
        if not self._count_written():
            self.storage.open(self.path, create=True).close()

    def truncate(self, entry_count: int) -> None:
        """Keep only the first entries."""
        written = self._count_written()
        keep = max(0, entry_count - written)
        del self._columns[0][keep:], self._columns[1][keep:]
        if entry_count < written:
            file = self._open()
            try:
                file.truncate(entry_count * self._layout.size)
            finally:
                file.close()
            self._written = entry_count
        self._last = (self._columns[0][-1], self._columns[1][-1]) if self._columns[0] else None

    def reset(self) -> None:
        """Empty the index, whatever is in its file. None is made before there is an entry to write."""
        del self._columns[0][:], self._columns[1][:]
        if self.storage.exists(self.path):
            file = self._open()
            try:
                if file.size:
                    file.truncate(0)
            finally:
                file.close()
        self._written = 0
        self._last = None

    # --- the file ---

    def _count_written(self) -> int:
        if self._written < 0:
            try:
                size = self.storage.size(self.path)
            except FileNotFoundError:
                raise CorruptionError(f"{self.path} is missing") from None
            if size % self._layout.size:
                raise CorruptionError(f"{self.path} has {size} bytes: its last entry is torn")
            self._written = size // self._layout.size
        return self._written

    def _open(self) -> File:
        try:
            return self.storage.open(self.path)
        except FileNotFoundError:
            raise CorruptionError(f"{self.path} is missing") from None

    def _read_one(self, slot: int) -> Entry:
        file = self._open()
        try:
            return self._read(file, slot, 1)[0]
        finally:
            file.close()

    def _read(self, file: File, slot: int, count: int) -> list[Entry]:
        data = file.read(slot * self._layout.size, count * self._layout.size)
        if len(data) != count * self._layout.size:
            raise CorruptionError(f"{self.path} is shorter than it was")
        return list(self._layout.iter_unpack(data))
