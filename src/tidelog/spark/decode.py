"""Record batches as they travel and lie on disks, to Arrow: no Python object a record.

decoder = Decoder(columns, arrow_schema, {"topic": "orders", "partition": 0})
batches = decoder.scan(data)                # headers only, so that the next answer can be asked for
yield from decoder.decode(batches, first_offset, end_offset, aborted)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tidelog.errors import ErrorCode, KafkaError
from tidelog.spark.decode_columns import Records, build_column
from tidelog.spark.decode_payloads import Payloads
from tidelog.wire.batch import CRC_START, HEADER_SIZE, ControlType, control_type, crc32c, iterate_records, read_header
from tidelog.wire.batch_header import COMPRESSION_MASK, CONTROL, LENGTH_END, LOG_APPEND_TIME, TRANSACTIONAL
from tidelog.wire.batch_records import SMALLEST_RECORD_BYTES

Array = Any
Aborted = Iterable[tuple[int, int]]
"""Producer id and first offset of each transaction that was aborted."""

MAX_ARROW_BATCH_BYTES = 16 * 1024 * 1024
"""Keys and values in one Arrow batch. The JVM holds a batch outside its heap, once or twice."""
MANY_RECORDS = 500_000
"""From here on loading the compiled loops pays in the first query; it takes more than a second in a new process."""
USED_TO_RECORDS = 200_000
"""A process that has decoded so many will go on: the compiled loops pay in what comes next."""

_kernels: Any = None
_decoded_records = 0


def kernels(expected_records: int) -> Any:
    """The compiled loops where they are loaded already or worth loading, else those of numpy."""
    global _kernels  # noqa: PLW0603 - loaded once a process
    if _kernels is None and (expected_records >= MANY_RECORDS or _decoded_records >= USED_TO_RECORDS):
        try:
            from tidelog.spark import decode_kernels

            _kernels = decode_kernels
        except ImportError:  # numba is optional
            from tidelog.spark import decode_fallback

            _kernels = decode_fallback
    if _kernels is not None:
        return _kernels
    from tidelog.spark import decode_fallback

    return decode_fallback


class Batches:
    """The headers of whole batches one behind the other, a column an array."""

    def __init__(self, data: memoryview, positions: Array, fields: Array, bad_at: int | None = None) -> None:
        self.data = data
        self.positions = positions
        self.bad_at = bad_at
        """Where something else stands than a batch; None when all are whole, or the last one is only cut short."""
        self.origin = 0
        """Where the data begins in its file."""
        self._fields = fields
        (
            self.base_offsets,
            self.lengths,
            self.leader_epochs,
            _,
            self.checksums,
            self.attributes,
            self.last_deltas,
            self.base_timestamps,
            self.max_timestamps,
            self.producer_ids,
            self.producer_epochs,
            self.base_sequences,
            self.counts,
        ) = fields.T
        self.count = int(positions.size)

    def first(self, count: int) -> Batches:
        """The first so many of them."""
        return Batches(self.data, self.positions[:count], self._fields[:count])

    @property
    def next_offset(self) -> int:
        """The offset behind the last batch; -1 when there is none."""
        return int(self.base_offsets[-1] + self.last_deltas[-1]) + 1 if self.count else -1

    @property
    def size(self) -> int:
        """Bytes of all whole batches; what follows is the beginning of another."""
        return int(self.positions[-1] + self.lengths[-1]) + LENGTH_END if self.count else 0

    @property
    def last_offsets(self) -> Array:
        """The last offset of each batch."""
        return self.base_offsets + self.last_deltas


class Decoder:
    """Decodes one partition's batches. Its memory is used again, so one is made for a task, not for an answer."""

    def __init__(
        self,
        schema: pa.Schema,
        constants: Mapping[str, Any],
        *,
        expected_records: int = 0,
        read_committed: bool = False,
        keep_control: bool = False,
        check_crcs: bool = True,
        skip: Callable[[int, str], None] | None = None,
    ) -> None:
        """`constants` are the columns that are the same in every row, by name.

        With `skip` a batch that is damaged is left out, and its position and what is wrong with it are told there.
        """
        self.schema = schema
        self.constants = dict(constants)
        self._kernels = kernels(expected_records)
        self._read_committed = read_committed
        self._keep_control = keep_control
        self._check_crcs = check_crcs
        self._skip = skip
        self._payloads = Payloads()
        self._cache: dict[str, pa.Array] = {}

    def scan(self, data: memoryview) -> Batches:
        """The headers of the whole batches, up to the end or to what is no batch."""
        array = np.frombuffer(data, np.uint8)
        room = len(data) // HEADER_SIZE
        positions = np.empty(room, np.int64)
        fields = np.empty((room, 13), np.int64)
        found = self._kernels.scan_batches(array, positions, fields)
        bad_at = None
        if found < 0:
            found = -found - 1
            bad_at = int(positions[found - 1] + fields[found - 1, 1]) + LENGTH_END if found else 0
        return Batches(data, positions[:found], fields[:found], bad_at)

    def decode(
        self, batches: Batches, first_offset: int, end_offset: int, aborted: Aborted = ()
    ) -> Iterator[pa.RecordBatch]:
        """The visible records with offsets from `first_offset` up to before `end_offset`."""
        wanted = (batches.last_offsets >= first_offset) & (batches.base_offsets < end_offset)
        self._check(batches, wanted)
        chosen = np.flatnonzero(wanted & self._visible(batches, list(aborted)) & (batches.counts != 0))
        if not chosen.size:
            return
        records = self._index(batches, chosen, first_offset, end_offset)
        for piece in records.pieces(MAX_ARROW_BATCH_BYTES):
            columns = [build_column(field, piece, self._kernels, self.constants, self._cache) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _check(self, batches: Batches, wanted: Array) -> None:
        """Every wanted batch's checksum."""
        if not self._check_crcs:
            return
        view = batches.data
        chosen = np.flatnonzero(wanted)
        starts = batches.positions[chosen]
        ends = starts + batches.lengths[chosen] + LENGTH_END
        checksums = batches.checksums[chosen].tolist()
        for index, start, end, checksum in zip(chosen.tolist(), starts.tolist(), ends.tolist(), checksums, strict=True):
            if crc32c(view[start + CRC_START : end], 0) != checksum:
                self._damaged(batches, index, "its checksum is wrong")
                wanted[index] = False

    def _damaged(self, batches: Batches, index: int, what: str) -> None:
        """Leave a batch out, if that was asked for; else CORRUPT_MESSAGE."""
        position = int(batches.positions[index]) + batches.origin
        message = f"the batch at offset {int(batches.base_offsets[index])} (byte {position}): {what}"
        if self._skip is None:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        self._skip(position, message)

    def _visible(self, batches: Batches, aborted: list[tuple[int, int]]) -> Array:
        """Which batches hold records for a reader: no markers and, if it reads committed ones, no aborted ones."""
        control = (batches.attributes & CONTROL) != 0
        visible = np.ones(batches.count, bool) if self._keep_control else ~control
        if not self._read_committed or not aborted:
            return visible
        aborted.sort(key=lambda one: one[1], reverse=True)
        aborting: set[int] = set()
        # Only what belongs to transactions can begin, end or be skipped: the rest is not looked at one by one.
        last_offsets = batches.last_offsets
        for index in np.flatnonzero(batches.attributes & (CONTROL | TRANSACTIONAL)).tolist():
            while aborted and aborted[-1][1] <= last_offsets[index]:
                aborting.add(aborted.pop()[0])
            producer = int(batches.producer_ids[index])
            if control[index]:
                if self._is_abort(batches, index):
                    aborting.discard(producer)
            elif producer in aborting:
                visible[index] = False
        return visible

    def _is_abort(self, batches: Batches, index: int) -> bool:
        header = read_header(batches.data, int(batches.positions[index]))
        return any(control_type(record.key) == ControlType.ABORT for record in iterate_records(header))

    def _index(self, batches: Batches, chosen: Array, first_offset: int, end_offset: int) -> Records:
        """Where the records are; a batch that lies about its records is damaged."""
        while True:
            data, starts, ends, chosen = self._unpack(batches, chosen)
            counts = batches.counts[chosen]
            impossible = (counts < 0) | (counts * SMALLEST_RECORD_BYTES > ends - starts)
            if impossible.any():
                bad = int(np.argmax(impossible))
            else:
                append_timestamps = np.where(
                    batches.attributes[chosen] & LOG_APPEND_TIME, batches.max_timestamps[chosen], -1
                )
                records = Records(data, int(counts.sum()), batches, chosen)
                found = self._kernels.index_records(
                    *(data, starts, ends, counts),
                    *(batches.base_offsets[chosen], batches.base_timestamps[chosen], append_timestamps),
                    *(first_offset, end_offset),
                    *records.arrays(),
                )
                if found >= 0:
                    global _decoded_records  # noqa: PLW0603 - of this process
                    _decoded_records += found
                    records.cut(found)
                    return records
                bad = int(np.searchsorted(np.cumsum(counts), -found))
            self._damaged(batches, int(chosen[bad]), "its records cannot be read")
            chosen = np.delete(chosen, bad)

    def _unpack(self, batches: Batches, chosen: Array) -> tuple[Array, Array, Array, Array]:
        """One piece of memory with the records of the chosen batches, where in it they are, and which could be read."""
        starts = batches.positions[chosen] + HEADER_SIZE
        ends = batches.positions[chosen] + batches.lengths[chosen] + LENGTH_END
        kinds = batches.attributes[chosen] & COMPRESSION_MASK
        if not kinds.any():
            return np.frombuffer(batches.data, np.uint8), starts, ends, chosen
        self._payloads.clear()
        places: list[tuple[int, int]] = []
        good = np.ones(chosen.size, bool)
        for index, (start, end, kind) in enumerate(zip(starts.tolist(), ends.tolist(), kinds.tolist(), strict=True)):
            try:
                places.append(self._payloads.add(kind, batches.data[start:end]))
            except KafkaError as error:
                self._damaged(batches, int(chosen[index]), str(error))
                good[index] = False
        unpacked = np.array(places, np.int64).reshape(-1, 2)
        begins, limits = np.ascontiguousarray(unpacked[:, 0]), np.ascontiguousarray(unpacked[:, 1])
        return self._payloads.data, begins, limits, chosen[good]
