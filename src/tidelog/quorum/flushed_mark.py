"""How far the metadata log was flushed, kept beside it, so that a start notices records that are missing.

Other voters count what this one has flushed. If a disk lost some of it, this replica must not vote as if it had never
had it: a candidate without those records could win, and what is committed would be gone. Apache Kafka has no such
file, and ignores it.

The file is a list of offsets, each with a checksum, of which the last good one counts. The mark never runs ahead of
the log: it is written after every flush of the log, and then flushed itself while nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from zlib import crc32

from tidelog.outbox import Outbox
from tidelog.storage import File, Storage

FILE_NAME = "flushed-end-offset"
REWRITE_BYTES = 64 * 1024
"""Size at which the file is written anew with its last entry."""

_offset = Struct(">q")
_entry = Struct(">qI")


class FlushedMark:
    """A lower bound of what is on the medium."""

    def __init__(self, outbox: Outbox, storage: Storage, directory: str, on_failed: Callable[[str], None]) -> None:
        self._outbox = outbox
        self._storage = storage
        self._directory = directory
        self._on_failed = on_failed
        self._path = f"{directory}/{FILE_NAME}"
        self._file: File = storage.open(self._path, create=True)
        self.offset = self._read()
        self._written = self.offset
        self._durable: int | None = None
        """What is known to be there after a power loss."""
        self._is_named = False
        """Whether the file's name is durable too."""
        self._is_flushing = False
        self._is_rewriting = False
        self._after_rewriting: list[Callable[[], None]] = []

    def raise_to(self, offset: int) -> None:
        """All below is on the medium."""
        if offset > self.offset:
            self.offset = offset
            self._write()
            if not self._is_flushing:
                self._flush_behind()

    def lower_to(self, offset: int, then: Callable[[], None]) -> None:
        """The log is about to be cut for a good reason: lower the mark durably, then continue."""
        if offset >= self.offset:
            then()
        else:
            self.offset = offset
            self.flush(then)

    def flush(self, then: Callable[[], None]) -> None:
        """Make the mark durable, then continue."""
        if self._is_rewriting:
            self._after_rewriting.append(lambda: self.flush(then))
            return
        self._write()
        offset = self.offset

        def flushed(error: str | None) -> None:
            if error is not None:
                self._on_failed(f"{self._path} cannot be flushed: {error}")
                return
            self._durable = offset
            self._is_named = True
            then()

        directories = () if self._is_named else (self._directory,)
        self._outbox.flush(self._storage, flushed, files=[self._file], directories=directories)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _write(self) -> None:
        if self._written != self.offset and not self._is_rewriting:
            self._file.append(_encode(self.offset))
            self._written = self.offset

    def _flush_behind(self) -> None:
        """Flush as long as there is something to, one at a time."""
        self._is_flushing = self._durable != self.offset
        if not self._is_flushing:
            return
        if self._file.size >= REWRITE_BYTES:
            self._rewrite()
        else:
            self.flush(self._flush_behind)

    def _rewrite(self) -> None:
        offset = self.offset
        self._is_rewriting = True

        def rewritten(error: str | None) -> None:
            self._is_rewriting = False
            if error is not None:
                self._on_failed(f"{self._path} cannot be written: {error}")
                return
            self._file.close()
            self._file = self._storage.open(self._path)
            self._written = self._durable = offset
            self._write()
            waiting, self._after_rewriting = self._after_rewriting, []
            for flush in waiting:
                flush()
            self._flush_behind()

        replacements = [(self._path, _encode(offset))]
        self._outbox.flush(self._storage, rewritten, replacements=replacements, directories=[self._directory])

    def _read(self) -> int:
        """The last good entry, behind which the file is cut; 0 when there is none."""
        data = self._file.read(0, self._file.size)
        offset = end = 0
        while end + _entry.size <= len(data):
            found, checksum = _entry.unpack_from(data, end)
            if checksum != crc32(data[end : end + 8]) or found < 0:
                break
            offset, end = found, end + _entry.size
        if end < len(data):
            self._file.truncate(end)
        return offset


def _encode(offset: int) -> bytes:
    packed = _offset.pack(offset)
    return _entry.pack(offset, crc32(packed))
