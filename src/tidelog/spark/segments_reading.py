"""The bytes of a segment, some megabytes at a time, as whole batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tidelog.errors import CorruptionError
from tidelog.spark.decode import Batches, Decoder

CHUNK_BYTES = 8 * 1024 * 1024
LARGEST_BATCH_BYTES = 1 << 31


class SegmentBytes:
    """A part of a file, read into the same memory again and again: mapping it would cost a fault every few pages."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        self.path = path
        self.position = start
        self.end = end
        self._file = path.open("rb", buffering=0)
        self._memory = bytearray(min(CHUNK_BYTES, max(end - start, 1)))
        self.trouble: tuple[int, str] | None = None
        """Where and why `batches` stopped before the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def batches(self, decoder: Decoder) -> Iterator[Batches]:
        """Whole batches until the end, or until what is none; then `trouble` says where and what."""
        while self.position < self.end and self.trouble is None:
            data = self._read()
            batches = decoder.scan(data)
            batches.origin = self.position
            if batches.bad_at is not None:
                self.trouble = (self.position + batches.bad_at, "there is no record batch")
            elif batches.size == 0 and not self._grow(data):
                self.trouble = (self.position, "a record batch is torn")
            self.position += batches.size
            if batches.count:
                yield batches

    def go_to(self, position: int) -> None:
        """Go on behind the trouble."""
        self.position = position
        self.trouble = None

    def _read(self) -> memoryview:
        self._file.seek(self.position)
        view = memoryview(self._memory)[: self.end - self.position]
        filled = 0
        while filled < len(view):
            count = self._file.readinto(view[filled:])
            if not count:
                break
            filled += count
        return view[:filled]

    def _grow(self, data: memoryview) -> bool:
        """Make room for a batch larger than the memory; False when the file ends before the batch does."""
        size = 12 + int.from_bytes(data[8:12], "big") if len(data) >= 12 else 0
        if size <= len(self._memory) or self.position + size > self.end or size > LARGEST_BATCH_BYTES:
            return False
        self._memory = bytearray(size)
        return True


def corrupt(path: Path, position: int, what: str) -> CorruptionError:
    """The error that names the file and the place in it."""
    return CorruptionError(f"{path}: byte {position}: {what}; onCorruption=skip leaves damaged batches out")
