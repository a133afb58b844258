"""Record batches as they travel and lie on disks, to Arrow: no Python object a record.

decoder = Decoder(columns, arrow_schema, {"topic": "orders", "partition": 0})
batches = decoder.scan(data)                # headers only, so that the next answer can be asked for
yield from decoder.decode(batches, first_offset, end_offset, aborted)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
MANY_RECORDS = 100_000
"""From here on loading the compiled loops pays; they take more than a second in a new process."""

_kernels: Any = None


def kernels(expected_records: int) -> Any:
    """The compiled loops where they are loaded already or worth loading, else those of numpy."""
    global _kernels  # noqa: PLW0603 - loaded once a process
    if _kernels is None and expected_records >= MANY_RECORDS:
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

    def __init__(self, data: memoryview, positions: Array, fields: Array) -> None:
        self.data = data
        self.positions = positions
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
    ) -> None:
        """`constants` are the columns that are the same in every row, by name."""
        self.schema = schema
        self.constants = dict(constants)
        self._kernels = kernels(expected_records)
        self._read_committed = read_committed
        self._keep_control = keep_control
        self._check_crcs = check_crcs
        self._payloads = Payloads()
        self._cache: dict[str, pa.Array] = {}

    def scan(self, data: memoryview) -> Batches:
        """The headers of the whole batches; CORRUPT_MESSAGE where there is none, with the position in the text."""
        array = np.frombuffer(data, np.uint8)
        room = len(data) // HEADER_SIZE
        positions = np.empty(room, np.int64)
        fields = np.empty((room, 13), np.int64)
        found = self._kernels.scan_batches(array, positions, fields)
        if found < 0:
            where = _end_of(positions, fields, -found - 1)
            read_header(data, where)  # says what is wrong, if it is one of the usual things
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no record batch at byte {where}")
        return Batches(data, positions[:found], fields[:found])

    def decode(
        self, batches: Batches, first_offset: int, end_offset: int, aborted: Aborted = ()
    ) -> Iterator[pa.RecordBatch]:
        """The visible records with offsets from `first_offset` up to before `end_offset`."""
        wanted = (batches.last_offsets >= first_offset) & (batches.base_offsets < end_offset)
        self._check(batches, np.flatnonzero(wanted))
        chosen = np.flatnonzero(wanted & self._visible(batches, list(aborted)) & (batches.counts > 0))
        if chosen.size:
            records = self._index(batches, chosen, first_offset, end_offset)
            for piece in records.pieces(MAX_ARROW_BATCH_BYTES):
                columns = [
                    build_column(field, piece, self._kernels, self.constants, self._cache) for field in self.schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _check(self, batches: Batches, chosen: Array) -> None:
        """CORRUPT_MESSAGE at the first of the chosen batches whose checksum is wrong."""
        if not self._check_crcs:
            return
        view = batches.data
        starts = batches.positions[chosen]
        ends = starts + batches.lengths[chosen] + LENGTH_END
        for start, end, checksum in zip(
            starts.tolist(), ends.tolist(), batches.checksums[chosen].tolist(), strict=True
        ):
            if crc32c(view[start + CRC_START : end], 0) != checksum:
                offset = read_header(view, start).base_offset
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"the checksum of the batch at offset {offset} (byte {start}) is wrong"
                )

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
        starts = batches.positions[chosen] + HEADER_SIZE
        ends = batches.positions[chosen] + batches.lengths[chosen] + LENGTH_END
        attributes = batches.attributes[chosen]
        data: Array = np.frombuffer(batches.data, np.uint8)
        if (attributes & COMPRESSION_MASK).any():
            data, starts, ends = self._unpack(batches.data, starts, ends, attributes & COMPRESSION_MASK)
        counts = batches.counts[chosen]
        impossible = (counts < 0) | (counts * SMALLEST_RECORD_BYTES > ends - starts)
        if impossible.any():
            offset = int(batches.base_offsets[chosen][np.argmax(impossible)])
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} has fewer records than it says")
        append_timestamps = np.where(attributes & LOG_APPEND_TIME, batches.max_timestamps[chosen], -1)
        records = Records(data, int(counts.sum()), batches, chosen)
        found = self._kernels.index_records(
            *(data, starts, ends, counts),
            *(batches.base_offsets[chosen], batches.base_timestamps[chosen], append_timestamps),
            *(first_offset, end_offset),
            *records.arrays(),
        )
        if found < 0:
            index = int(np.searchsorted(np.cumsum(counts), -found))
            offset = int(batches.base_offsets[chosen][index])
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record of the batch at offset {offset} cannot be read")
        records.cut(found)
        return records

    def _unpack(self, view: memoryview, starts: Array, ends: Array, kinds: Array) -> tuple[Array, Array, Array]:
        self._payloads.clear()
        places = [
            self._payloads.add(kind, view[start:end])
            for start, end, kind in zip(starts.tolist(), ends.tolist(), kinds.tolist(), strict=True)
        ]
        unpacked = np.array(places, np.int64)
        return self._payloads.data, np.ascontiguousarray(unpacked[:, 0]), np.ascontiguousarray(unpacked[:, 1])


def _end_of(positions: Array, fields: Array, count: int) -> int:
    """Where the batch after the first `count` begins."""
    return int(positions[count - 1] + fields[count - 1, 1]) + LENGTH_END if count else 0
