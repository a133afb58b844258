"""`.txnindex`: the aborted transactions that ended in a segment (KIP-98), for read_committed readers.

The file exists only where a transaction was aborted. Entries of 34 bytes, in the order of their markers.
"""

from __future__ import annotations

from struct import Struct

from tidelog.errors import CorruptionError
from tidelog.storage import Storage

_LAYOUT = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction:
    """A transaction that readers of committed records must skip."""

    __slots__ = ("first_offset", "last_offset", "last_stable_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        """Where its marker is."""
        self.last_stable_offset = last_stable_offset
        """Where the log was stable to once the marker was written."""

    def __repr__(self) -> str:
        return f"AbortedTransaction({self.producer_id}, {self.first_offset}..{self.last_offset})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedTransaction) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash((self.producer_id, self.last_offset))

    def to_bytes(self) -> bytes:
        """The entry in the file."""
        return _LAYOUT.pack(_VERSION, self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset)


class TransactionIndex:
    """The transaction index of one segment. It is read where it lies: aborts are few."""

    __slots__ = ("exists", "path", "storage")

    def __init__(self, storage: Storage, path: str, *, exists: bool) -> None:
        self.storage = storage
        self.path = path
        self.exists = exists
        """Whether there is a file: most segments have none, and are spared the look."""

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose marker was just written to the segment."""
        file = self.storage.open(self.path, create=True)
        try:
            file.append(aborted.to_bytes())
        finally:
            file.close()
        self.exists = True

    def read(self) -> list[AbortedTransaction]:
        """All entries, oldest marker first; CorruptionError when the file cannot be one."""
        if not self.exists:
            return []
        data = self.storage.read_file(self.path)
        if len(data) % _LAYOUT.size:
            raise CorruptionError(f"{self.path} has {len(data)} bytes: its last entry is torn")
        entries = []
        for version, *fields in _LAYOUT.iter_unpack(data):
            if version != _VERSION:
                raise CorruptionError(f"{self.path} has an entry of version {version}")
            entries.append(AbortedTransaction(*fields))
        return entries

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that ended at `offset` or after it."""
        if self.exists:
            self._cut(sum(entry.last_offset < offset for entry in self.read()) * _LAYOUT.size)

    def reset(self) -> None:
        """Drop them all, to be built anew."""
        if self.exists:
            self._cut(0)

    def _cut(self, size: int) -> None:
        file = self.storage.open(self.path)
        try:
            if file.size > size:
                file.truncate(size)
        finally:
            file.close()
