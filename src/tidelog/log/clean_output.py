"""The segment a compaction writes, in files that end in `.cleaned`: batches, indexes, aborted transactions."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.log import names
from tidelog.log.clean_plan import CleanRequest
from tidelog.log.segment import Segment
from tidelog.log.txn_index import AbortedTransaction
from tidelog.storage import Storage
from tidelog.wire.batch import read_header


class Output:
    """One new segment. Batches are gathered and written a buffer at a time."""

    def __init__(self, storage: Storage, request: CleanRequest, base_offset: int) -> None:
        self._io_bytes = request.io_bytes
        self._gathered: list[bytes | memoryview] = []
        self._gathered_bytes = 0
        self._storage = storage
        self._request = request
        self._base_offset = base_offset
        self._segment: Segment | None = None
        self.has_txn_index = False

    @property
    def size(self) -> int:
        """Bytes of batches written so far."""
        return 0 if self._segment is None else self._segment.size

    def add(self, batch: bytes | memoryview) -> None:
        """Add a batch behind the last one."""
        self._gathered.append(batch)
        self._gathered_bytes += len(batch)
        if self._gathered_bytes >= self._io_bytes:
            self._write_out()

    def finish(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Write what is left, complete the indexes, and list the transactions that readers must still skip."""
        self._write_out()
        segment = self._open()
        segment.seal()
        for transaction in aborted:
            segment.txn_index.append(transaction)
        self.has_txn_index = segment.txn_index.exists
        segment.close()

    def _write_out(self) -> None:
        if not self._gathered:
            return
        segment = self._open()
        position = segment.size
        segment.append(b"".join(self._gathered))
        for batch in self._gathered:
            header = read_header(batch)
            segment.note_batch(position, header.size, header.last_offset, header.newest_record_timestamp)
            position += header.size
        segment.write_out_chunks()
        self._gathered = []
        self._gathered_bytes = 0

    def _open(self) -> Segment:
        """Begin the files; leftovers of their names go first, which a helper of a dead node may still have open."""
        if self._segment is None:
            for suffix in names.SEGMENT_SUFFIXES:
                name = names.file_name(self._base_offset, suffix) + names.CLEANED_SUFFIX
                self._storage.delete(f"{self._request.directory}/{name}")
            self._segment = Segment.create(
                self._storage,
                self._request.directory,
                self._base_offset,
                index_interval_bytes=self._request.index_interval_bytes,
                index_bytes=self._request.index_bytes,
                now_ms=self._request.now_ms,
                extension=names.CLEANED_SUFFIX,
            )
        return self._segment
