"""One segment of a log: a file of batches, and the indexes into it.

The newest segment of a log is appended to; a sealed one changes only by being cut or deleted. What is known of a sealed
segment is read when somebody asks, so that a log of a thousand segments opens as fast as one of two.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.errors import CorruptionError
from tidelog.log import names, scan
from tidelog.log.index_file import CHUNK_ENTRIES
from tidelog.log.offset_index import OffsetIndex
from tidelog.log.time_index import NO_TIMESTAMP, TimeIndex
from tidelog.log.txn_index import TransactionIndex
from tidelog.storage import File, Storage
from tidelog.wire.batch import BatchHeader

RELATIVE_OFFSET_MAX = (1 << 31) - 1
"""Indexes hold offsets relative to the segment's in 31 bits."""


class Segment:
    """A segment's file and indexes."""

    __slots__ = (
        "_checked",
        "_file",
        "_first_timestamp",
        "_newest",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "extension",
        "index_bytes",
        "index_interval_bytes",
        "is_index_full",
        "offset_index",
        "size",
        "storage",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        storage: Storage,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        index_bytes: int,
        size: int,
        created_ms: int,
        has_txn_index: bool,
        extension: str = "",
    ) -> None:
        self.storage = storage
        self.directory = directory
        self.base_offset = base_offset
        self.extension = extension
        """Behind every file name: `.cleaned` while a compaction writes it."""
        self.index_interval_bytes = index_interval_bytes
        self.index_bytes = index_bytes
        """The largest an index file may become."""
        self.is_index_full = False
        self.size = size
        """Bytes of the file that hold batches. Invariant: equal to the file's size outside of this room's methods."""
        self.created_ms = created_ms
        self.bytes_since_index = 0
        self.offset_index = OffsetIndex(storage, self.path(names.OFFSET_INDEX_SUFFIX), base_offset)
        self.time_index = TimeIndex(storage, self.path(names.TIME_INDEX_SUFFIX), base_offset)
        self.txn_index = TransactionIndex(storage, self.path(names.TXN_INDEX_SUFFIX), exists=has_txn_index)
        self._file: File | None = None
        self._newest: tuple[int, int] | None = None
        self._first_timestamp: int | None = None
        self._checked = False

    @classmethod
    def create(
        cls,
        storage: Storage,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        index_bytes: int,
        now_ms: int,
        extension: str = "",
    ) -> Segment:
        """A new empty segment. Leftovers of its name are emptied; index files come with their first entries."""
        segment = cls(
            storage,
            directory,
            base_offset,
            index_interval_bytes=index_interval_bytes,
            index_bytes=index_bytes,
            size=0,
            created_ms=now_ms,
            has_txn_index=False,
            extension=extension,
        )
        storage.delete(segment.path(names.TXN_INDEX_SUFFIX))
        segment.offset_index.reset()
        segment.time_index.reset()
        file = storage.open(segment.path(names.LOG_SUFFIX), create=True)
        if file.size:
            file.truncate(0)
        segment._file = file
        segment._newest = (NO_TIMESTAMP, base_offset)
        segment._checked = True
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path(names.LOG_SUFFIX)}, {self.size} bytes)"

    def path(self, suffix: str) -> str:
        """Where one of the segment's files is."""
        return f"{self.directory}/{names.file_name(self.base_offset, suffix)}{self.extension}"

    @property
    def file(self) -> File:
        """The batches; one handle for as long as the segment lives, so that its slices know of every cut."""
        if self._file is None:
            self._file = self.storage.open(self.path(names.LOG_SUFFIX))
        return self._file

    # --- appending ---

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write batches at the end. `note_batch` must follow for each of them, then `write_out_chunks`."""
        self.file.append(data)
        self.size += len(data)

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Keep the indexes up to date with a batch that was appended, or found by recovery."""
        if not position:
            self._first_timestamp = max_timestamp
        newest = self._newest
        if newest is None:
            newest = self.newest
        if max_timestamp > newest[0]:
            newest = self._newest = (max_timestamp, last_offset)
        if self.bytes_since_index > self.index_interval_bytes:
            self.offset_index.add(last_offset, position)
            self.time_index.add(*newest)
            self.bytes_since_index = size
            self.check_index_room()
        else:
            self.bytes_since_index += size

    def write_out_chunks(self) -> None:
        """Write index entries once there are many."""
        if self.offset_index.unwritten_count >= CHUNK_ENTRIES:
            self.write_out_indexes()

    def write_out_indexes(self) -> None:
        """Write all index entries that are only in memory."""
        self.offset_index.write_out()
        self.time_index.write_out()

    def seal(self) -> None:
        """Complete the indexes: the last entry by time of a segment that is closed is its newest timestamp."""
        if self._newest is not None:
            self.time_index.add(*self._newest)
        self.offset_index.complete()
        self.time_index.complete()

    def check_index_room(self) -> None:
        """See whether another index entry may be added; one more is kept free for sealing the time index."""
        self.is_index_full = self.offset_index.entry_count >= OffsetIndex.capacity(
            self.index_bytes
        ) or self.time_index.entry_count >= TimeIndex.capacity(self.index_bytes)

    def waited_ms(self, timestamp: int, now_ms: int) -> int:
        """How long the segment has been written to: by the records' times, or by the clock when they have none."""
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    # --- what is in it ---

    @property
    def newest(self) -> tuple[int, int]:
        """The newest timestamp and the last offset of the first batch that has it; (-1, base offset) without any."""
        if self._newest is None:
            self._use_indexes()
            self._newest = self.time_index.newest
        return self._newest

    @property
    def first_timestamp(self) -> int:
        """The newest timestamp of the first batch; -1 when it has none or the segment is empty."""
        if self._first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            self._first_timestamp = next(self.headers_from(0))[1].max_timestamp
        return self._first_timestamp

    def headers_from(self, position: int, read_bytes: int = scan.LOOK_AHEAD_BYTES) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from a batch's start on."""
        return scan.headers(self.file, position, self.size, read_bytes)

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Position and header of the first batch that reaches `offset`; None when all end before it."""
        self._use_indexes()
        position = self.offset_index.position_for(offset)
        if position:
            try:
                return self._walk_to(offset, position)
            except CorruptionError:
                self.rebuild_indexes()
                position = self.offset_index.position_for(offset)
        return self._walk_to(offset, position)

    def indexed_position(self, offset: int) -> int:
        """About where an offset is, without looking at the batches."""
        self._use_indexes()
        return self.offset_index.position_for(offset)

    def tail_start(self, entry_count: int) -> tuple[int, int]:
        """Where the last so many index entries begin, and how many of them there are."""
        self._use_indexes()
        entry = self.offset_index.entry_from_end(entry_count)
        return (entry[1], entry_count) if entry is not None else (0, self.offset_index.entry_count)

    def _walk_to(self, offset: int, position: int) -> tuple[int, BatchHeader] | None:
        expected = self.base_offset
        for found, header in self.headers_from(position):
            if header.base_offset < expected or header.last_offset_delta < 0:
                raise CorruptionError(f"{self.file.path} at {found}: offset {header.base_offset} is out of order")
            if header.last_offset >= offset:
                if found == position and position and header.base_offset > offset:
                    raise CorruptionError(f"{self.path(names.OFFSET_INDEX_SUFFIX)} points behind offset {offset}")
                return found, header
            expected = header.next_offset
        return None

    def cut_before(self, start: int, limit: int) -> tuple[int, int] | None:
        """A batch start after `start`, not beyond `limit`, and its offset: where a read of limited size ends.

        The index finds it; it is the last one there is only to within an index entry. None when the batch at `start`
        reaches beyond `limit`.
        """
        self._use_indexes()
        position = self.offset_index.batch_start_at_or_before(limit)
        if position > start:
            try:
                return position, next(self.headers_from(position))[1].base_offset
            except (CorruptionError, StopIteration):
                self.rebuild_indexes()  # and walk from the start of the read, which is known to be good
        previous: tuple[int, int] | None = None
        for found, header in self.headers_from(start):
            if found > limit:
                break
            previous = (found, header.base_offset)
        return previous if previous is not None and previous[0] > start else None

    def next_offset(self) -> int:
        """One past the last offset in the segment; its base offset when it is empty. Verifies that the file ends there.

        Also brings the newest timestamp up to date with what came after the last index entry.
        """
        end = self.base_offset
        newest = self.newest
        position = self.offset_index.last_position
        if position >= self.size and self.offset_index.entry_count:
            raise CorruptionError(f"{self.path(names.OFFSET_INDEX_SUFFIX)} points behind the end of the segment")
        for _, header in self.headers_from(position):
            end = header.next_offset
            if header.newest_record_timestamp > newest[0]:
                newest = (header.max_timestamp, header.last_offset)
        self._newest = newest
        return end

    # --- changing ---

    def truncate_to(self, offset: int, now_ms: int) -> int | None:
        """Cut the batch that holds `offset` and all after it; where the cut batch began, None when there was none."""
        found = self.locate(offset)
        if found is None:
            return None
        position, header = found
        self.file.truncate(position)
        self.size = position
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.bytes_since_index = 0
        if not position:
            self._first_timestamp = None
            self.created_ms = now_ms
        self._newest = None
        self.next_offset()
        return header.base_offset

    def rebuild_indexes(self) -> None:
        """Make the offset and time indexes anew from the batches, which are taken to be whole."""
        self.reset_indexes()
        for position, header in scan.headers(self.file, 0, self.size, scan.WALK_BYTES):
            self.note_batch(position, header.size, header.last_offset, header.newest_record_timestamp)
            self.write_out_chunks()
        self.seal()

    def reset_indexes(self) -> None:
        """Forget all that is indexed, for the batches to be noted again from the first."""
        self.offset_index.reset()
        self.time_index.reset()
        self._newest = (NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None
        self.bytes_since_index = 0
        self._checked = True

    def _use_indexes(self) -> None:
        """Check the index files before they are first used; what is missing or cannot be one is made anew."""
        if self._checked:
            return
        if not self.size:
            self.reset_indexes()
            return
        try:
            self.offset_index.check()
            self.time_index.check()
            self._checked = True
        except CorruptionError:
            self.rebuild_indexes()

    def mark_deleted(self) -> list[str]:
        """Rename the files out of use and return their paths; slices taken before stay readable."""
        renamed = []
        for suffix in names.SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if self.storage.exists(path):
                self.storage.rename(path, path + names.DELETED_SUFFIX)
                renamed.append(path + names.DELETED_SUFFIX)
        self.close()
        return renamed

    def destroy(self) -> None:
        """Cut everything, so that no slice is served any more, and delete the files: what was here never counted."""
        if self.storage.exists(self.path(names.LOG_SUFFIX)):
            self.file.truncate(0)
        self.discard()

    def discard(self) -> None:
        """Delete the files as they are, where nobody has a slice: a power loss brings them back whole if at all."""
        self.close()
        for suffix in names.SEGMENT_SUFFIXES:
            self.storage.delete(self.path(suffix))

    def close(self) -> None:
        """Give the file handle back."""
        if self._file is not None:
            self._file.close()
            self._file = None
