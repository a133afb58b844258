"""Compaction itself: a pure job over closed segments that writes new ones beside them (`Work`, see tidelog.effects).

Two readings, as in Kafka: the first notes the newest offset of every key in the dirty part, the second copies what no
later record supersedes. A batch that loses nothing is copied byte by byte; a segment that loses nothing is not written.

    of a batch                           what stays
    data                                 the newest record of each key; tombstones until the delete horizon (KIP-534)
    data of an aborted transaction       nothing
    a marker                             itself while its transaction has records, and then until the delete horizon
    the last of a producer, of a segment its header at least: sequences, epochs and ends of segments are not forgotten
    the first of a leader's epoch        its header at least (Kafka drops it): where an epoch began decides where two
                                         logs part, and whoever copies or recovers the log knows it from nothing else

Offsets never change, so a compacted log has gaps, but never between two segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from tidelog.errors import CorruptionError, DecodeError, KafkaError
from tidelog.log import names, scan
from tidelog.log.clean_keys import Kept, kept_records, newest_offsets, with_times_moved
from tidelog.log.clean_output import Output
from tidelog.log.clean_plan import Cleaned, CleanRequest, CleanResult, Source, group
from tidelog.log.clean_transactions import Transactions
from tidelog.log.txn_index import AbortedTransaction, TransactionIndex
from tidelog.storage import File, Storage
from tidelog.wire.batch import HEADER_SIZE, BatchHeader
from tidelog.wire.batch_header import DELETE_HORIZON, LOG_APPEND_TIME, pack_header
from tidelog.wire.compression import compress, decompress

_KEPT_ATTRIBUTES = 0x38
"""Of a batch without records: log append time, transactional, control. No codec, no delete horizon."""
_NO_TIMESTAMP = -1


def clean(storage: Storage, request: CleanRequest) -> CleanResult:
    """Carry out one round; files that end in `.cleaned` are left for the node to install."""
    job = _Job(storage, request)
    try:
        return job.run()
    except CorruptionError as error:
        return CleanResult((), request.first_dirty_offset, job.bytes_read, 0, 0, 0, 0, str(error))


class _Job:
    """One round, and what it counts."""

    def __init__(self, storage: Storage, request: CleanRequest) -> None:
        self._storage = storage
        self._request = request
        self._latest: dict[bytes, int] = {}
        """The newest offset of each key between the first dirty offset and `_clean_to`."""
        self._clean_to = request.first_dirty_offset
        bases = [*(one.base_offset for one in request.sources), request.end_offset]
        self._ends = dict(pairwise(bases))
        """Where the segment behind each source begins."""
        self._aborted = self._read_aborted()
        self.bytes_read = 0
        self._records_read = 0
        self._records_kept = 0
        self._unreadable = 0
        self._epoch: int | None = None
        """The leader epoch of the batch before the one under way in the second reading, which begins with the log."""

    def run(self) -> CleanResult:
        """Note the keys, then write every group of segments anew."""
        request = self._request
        self._note_keys()
        sources = [one for one in request.sources if one.base_offset < self._clean_to]
        transactions = Transactions(self._aborted)
        cleaned: list[Cleaned] = []
        bytes_written = 0
        index_sizes = [self._index_sizes(source) for source in sources]
        for first, count in group(sources, index_sizes, request):
            output = self._clean_group(sources[first : first + count], transactions)
            if output is not None:
                bytes_written += output.size
                cleaned.append(Cleaned(sources[first].base_offset, count, output.size, output.has_txn_index))
        return CleanResult(
            cleaned,
            self._clean_to,
            self.bytes_read,
            bytes_written,
            self._records_read,
            self._records_kept,
            self._unreadable,
            "",
        )

    # --- the first reading ---

    def _note_keys(self) -> None:
        request = self._request
        start = request.first_dirty_offset
        latest = self._latest
        transactions = Transactions(one for one in self._aborted if one.last_offset >= start)
        for source in request.sources:
            following = self._ends[source.base_offset]
            if following <= start:
                continue
            for _, header in self._batches(source, start):
                if header.is_control:
                    transactions.is_marker_free(header)
                elif not transactions.is_aborted(header):
                    if latest and len(latest) + header.record_count > request.max_keys:
                        return
                    with suppress(DecodeError, KafkaError, IndexError):
                        # One whose keys nobody knows is kept as it is by the second reading.
                        latest.update(_newest_offsets(header))
                self._clean_to = header.next_offset
            self._clean_to = max(self._clean_to, following)

    # --- the second reading ---

    def _clean_group(self, sources: list[Source], transactions: Transactions) -> Output | None:
        """Write one new segment; None when there is but one and nothing in it changes."""
        output = Output(self._storage, self._request, sources[0].base_offset)
        last = max((number for number, source in enumerate(sources) if source.size), default=-1)
        transactions.still_aborted = []
        is_same = len(sources) == 1
        for number, source in enumerate(sources):
            for position, header in self._batches(source, 0):
                is_end = number == last and position + header.size == source.size
                data = self._cleaned_batch(header, transactions, is_end)
                if is_same and not isinstance(data, memoryview):
                    self._copy_before(source, position, output)
                    is_same = False
                if data is not None and not is_same:
                    output.add(data)
        if is_same:
            return None
        output.finish(transactions.still_aborted)
        return output

    def _copy_before(self, source: Source, end: int, output: Output) -> None:
        """Copy what came before the first change in a segment; it was checked when it was read."""
        file = self._storage.open(self._path(source.base_offset, names.LOG_SUFFIX))
        try:
            for _, header in _whole_batches(file, end, self._request.io_bytes):
                output.add(header.data)
        finally:
            file.close()

    def _cleaned_batch(
        self, header: BatchHeader, transactions: Transactions, is_end: bool
    ) -> bytes | memoryview | None:
        """A batch as it is to be from now on, a view of it where it stays as it is; None when nothing of it is kept."""
        request = self._request
        is_first_of_epoch = header.partition_leader_epoch != self._epoch
        self._epoch = header.partition_leader_epoch
        horizon_ms = header.delete_horizon_ms
        is_past_horizon = horizon_ms is not None and horizon_ms <= request.now_ms
        self._records_read += header.record_count
        if header.is_control:
            is_free = transactions.is_marker_free(header)
            if header.record_count and not (is_free and is_past_horizon):
                self._records_kept += header.record_count
                if is_free and horizon_ms is None:
                    return _with_horizon(header, None, request.now_ms + request.delete_retention_ms)
                return header.data
        elif not transactions.is_aborted(header) and header.record_count:
            if header.base_offset >= self._clean_to:
                self._records_kept += header.record_count
                return header.data  # the next round's
            kept = self._kept(header, not is_past_horizon)
            if kept is None:
                self._records_kept += header.record_count
                return header.data
            self._records_kept += kept.record_count
            if kept.record_count:
                if kept.has_tombstone and horizon_ms is None:
                    return _with_horizon(header, kept, request.now_ms + request.delete_retention_ms)
                return header.data if kept.record_count == header.record_count else _with_fewer(header, kept)
        if is_end or self._is_last_of_producer(header):
            return header.data if not header.record_count else _emptied(header)
        if is_first_of_epoch:
            return header.data if _is_bare(header) else _emptied(header, is_bare=True)
        return None

    def _kept(self, header: BatchHeader, keeps_tombstones: bool) -> Kept | None:
        """What stays of a data batch; None when its records cannot be read."""
        try:
            data, start, end = _records_of(header)
            return kept_records(
                data, start, end, header.record_count, header.base_offset, self._latest, keeps_tombstones
            )
        except (DecodeError, KafkaError, IndexError):
            self._unreadable += 1
            return None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether this batch is what a producer's state is rebuilt from."""
        last = self._request.last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        last_offset, epoch = last
        if last_offset >= 0:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch

    # --- files ---

    def _batches(self, source: Source, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch that reaches `from_offset`, whole in its buffer, proven to be as written.

        The checksum does not cover the offset: it must rise, and stay below the next segment's.
        """
        if not source.size:
            return
        file = self._storage.open(self._path(source.base_offset, names.LOG_SUFFIX))
        expected, end_offset = source.base_offset, self._ends[source.base_offset]
        try:
            for position, header in _whole_batches(file, source.size, self._request.io_bytes):
                following = header.next_offset
                if not (expected <= header.base_offset < following <= end_offset):
                    raise CorruptionError(f"{file.path} at {position}: offset {header.base_offset} is out of order")
                expected = following
                if following <= from_offset:
                    continue
                if not header.crc_matches():
                    raise CorruptionError(f"{file.path} at {position}: the batch is damaged")
                self.bytes_read += header.size
                yield position, header
        finally:
            file.close()

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self._request.directory}/{names.file_name(base_offset, suffix)}"

    def _index_sizes(self, source: Source) -> tuple[int, int]:
        sizes = []
        for suffix in (names.OFFSET_INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
            path = self._path(source.base_offset, suffix)
            sizes.append(self._storage.size(path) if self._storage.exists(path) else 0)
        return sizes[0], sizes[1]

    def _read_aborted(self) -> list[AbortedTransaction]:
        """Every aborted transaction with records among the sources, wherever its marker is."""
        aborted = [AbortedTransaction(*fields) for fields in self._request.later_aborted]
        for source in self._request.sources:
            if source.has_txn_index:
                path = self._path(source.base_offset, names.TXN_INDEX_SUFFIX)
                aborted += TransactionIndex(self._storage, path, exists=True).read()
        return aborted


def _whole_batches(file: File, end: int, io_bytes: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch of a file, each whole in its header's buffer; CorruptionError where there is none."""
    io_bytes = max(io_bytes, HEADER_SIZE)
    buffer = b""
    buffer_start = position = 0
    while position < end:
        within = position - buffer_start
        if within + HEADER_SIZE > len(buffer):
            buffer = file.read(position, min(io_bytes, end - position))
            buffer_start, within = position, 0
        header = scan.header_at(file, buffer, within, position, end)
        if within + header.size > len(buffer):
            buffer = file.read(position, min(max(io_bytes, header.size), end - position))
            buffer_start = position
            header = scan.header_at(file, buffer, 0, position, end)
            if header.size > len(buffer):
                raise CorruptionError(f"{file.path} at {position}: the file is shorter than it was")
        yield position, header
        position += header.size


def _records_of(header: BatchHeader) -> tuple[bytes, int, int]:
    """Bytes that hold the records, uncompressed, and where in them the records begin and end."""
    if header.compression:
        data = decompress(header.compression, header.payload)
        return data, 0, len(data)
    assert isinstance(header.buffer, bytes)
    return header.buffer, header.position + HEADER_SIZE, header.position + header.size


def _newest_offsets(header: BatchHeader) -> dict[bytes, int]:
    data, start, end = _records_of(header)
    return newest_offsets(data, start, end, header.record_count, header.base_offset)


def _with_fewer(header: BatchHeader, kept: Kept) -> bytes:
    """The batch with only the records that stay, each as it was."""
    data, _, _ = _records_of(header)
    payload = b"".join([data[start:end] for start, end in kept.pieces])
    return _rebuilt(header, kept, payload, header.base_timestamp, header.attributes)


def _with_horizon(header: BatchHeader, kept: Kept | None, horizon_ms: int) -> bytes:
    """The batch with a delete horizon: it takes the place of the base time, from which records count theirs."""
    data, start, end = _records_of(header)
    pieces = [(start, end)] if kept is None else kept.pieces
    payload = with_times_moved(data, pieces, header.base_timestamp - horizon_ms)
    return _rebuilt(header, kept, payload, horizon_ms, header.attributes | DELETE_HORIZON)


def _rebuilt(header: BatchHeader, kept: Kept | None, payload: bytes, base_timestamp: int, attributes: int) -> bytes:
    max_timestamp = header.max_timestamp
    if kept is not None and not attributes & LOG_APPEND_TIME:
        max_timestamp = header.base_timestamp + kept.newest_delta
    return pack_header(
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count if kept is None else kept.record_count,
        payload=compress(header.compression, payload),
    )


def _is_bare(header: BatchHeader) -> bool:
    """Whether all that is left of a batch is where it was, and its epoch."""
    return not header.record_count and header.producer_id < 0 and not header.is_control


def _emptied(header: BatchHeader, *, is_bare: bool = False) -> bytes:
    """The header alone, for the offsets, the producer's sequence and the epoch in it; a bare one is nobody's, so that
    no marker waits for it.
    """
    return pack_header(
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & (LOG_APPEND_TIME if is_bare else _KEPT_ATTRIBUTES),
        last_offset_delta=header.last_offset_delta,
        base_timestamp=_NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=-1 if is_bare else header.producer_id,
        producer_epoch=-1 if is_bare else header.producer_epoch,
        base_sequence=-1 if is_bare else header.base_sequence,
        record_count=0,
        payload=b"",
    )
