"""Arrow columns from where the parts of records are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.batch_header import CONTROL, LOG_APPEND_TIME, MAX_INT32, TRANSACTIONAL

if TYPE_CHECKING:
    from tidelog.spark.decode import Batches

Array = Any


class Records:
    """Where the parts of records are in `data`, a record a place in each array."""

    def __init__(self, data: Array, room: int, batches: Batches, chosen: Array) -> None:
        self.data = data
        self.batches = batches
        self.chosen = chosen
        """The batches that were decoded; `batch_of` counts among them."""
        self.batch_of = np.empty(room, np.int32)
        self.offsets = np.empty(room, np.int64)
        self.timestamps = np.empty(room, np.int64)
        self.key_at = np.empty(room, np.int64)
        self.key_length = np.empty(room, np.int32)
        self.value_at = np.empty(room, np.int64)
        self.value_length = np.empty(room, np.int32)
        self.headers_at = np.empty(room, np.int64)
        self.headers_count = np.empty(room, np.int32)

    def arrays(self) -> tuple[Array, ...]:
        """In the order the loops fill them."""
        return tuple(getattr(self, name) for name in _ARRAYS)

    @property
    def count(self) -> int:
        """How many records."""
        return int(self.offsets.size)

    def cut(self, count: int, start: int = 0) -> None:
        """Keep `count` records from `start` on."""
        for name in _ARRAYS:
            setattr(self, name, getattr(self, name)[start : start + count])

    def pieces(self, max_bytes: int) -> Iterator[Records]:
        """All records, in pieces whose keys and values are at most `max_bytes`, or one record larger than that."""
        if not self.count:
            return
        sizes = np.cumsum(np.maximum(self.key_length, 0).astype(np.int64) + np.maximum(self.value_length, 0))
        start = 0
        while start < self.count:
            before = int(sizes[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(sizes, before + max_bytes, "right")))
            if start == 0 and end == self.count:
                yield self
            else:
                piece = object.__new__(Records)
                piece.__dict__.update(self.__dict__)
                piece.cut(end - start, start)
                yield piece
            start = end

    def of_batch(self, column: Array) -> Array:
        """A value of each record's batch."""
        values = column[self.chosen]
        return np.full(self.count, values[0]) if values.size == 1 else values[self.batch_of]


_ARRAYS = (
    *("batch_of", "offsets", "timestamps", "key_at", "key_length"),
    *("value_at", "value_length", "headers_at", "headers_count"),
)


def build_column(
    field: pa.Field, records: Records, kernels: Any, constants: Mapping[str, Any], cache: dict[str, pa.Array]
) -> pa.Array:
    """The column of this name. What is the same in every row is made once and sliced."""
    name = field.name
    if name in constants:
        return _constant(field, constants[name], records.count, cache)
    if name == "value":
        return _binary(field.type, kernels, records.data, records.value_at, records.value_length)
    if name == "key":
        return _binary(field.type, kernels, records.data, records.key_at, records.key_length)
    if name == "offset":
        return _numbers(field.type, records.offsets)
    if name == "timestamp":
        return _numbers(field.type, records.timestamps * 1000)
    if name == "headers":
        return _headers(field.type, kernels, records)
    return _of_batches(field, records)


def _of_batches(field: pa.Field, records: Records) -> pa.Array:
    batches = records.batches
    name = field.name
    if name == "timestampType":
        return _numbers(field.type, records.of_batch((batches.attributes & LOG_APPEND_TIME) >> 3).astype(np.int32))
    if name == "position":
        return _numbers(field.type, records.of_batch(batches.positions) + batches.origin)
    if name == "leader_epoch":
        return _numbers(field.type, records.of_batch(batches.leader_epochs).astype(np.int32))
    if name == "producer_id":
        return _numbers(field.type, records.of_batch(batches.producer_ids))
    if name == "producer_epoch":
        return _numbers(field.type, records.of_batch(batches.producer_epochs).astype(np.int16))
    if name == "sequence":
        first = records.of_batch(batches.base_sequences)
        delta = records.offsets - records.of_batch(batches.base_offsets)
        # Sequences go on at 0 behind the largest number of 32 bits.
        return _numbers(field.type, np.where(first < 0, -1, (first + delta) & MAX_INT32).astype(np.int32))
    flag = {"is_transactional": TRANSACTIONAL, "is_control": CONTROL}[name]
    bits = np.packbits(records.of_batch(batches.attributes & flag) != 0, bitorder="little")
    return pa.Array.from_buffers(field.type, records.count, [None, pa.py_buffer(bits)])


def _numbers(kind: pa.DataType, values: Array) -> pa.Array:
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(values)])


def _constant(field: pa.Field, value: Any, count: int, cache: dict[str, pa.Array]) -> pa.Array:
    known = cache.get(field.name)
    if known is None or len(known) < count:
        known = cache[field.name] = _repeated(field.type, value, count)
    return known.slice(0, count)


def _repeated(kind: pa.DataType, value: str | int, count: int) -> pa.Array:
    """Arrow's own way would load pandas to see whether the value is one of its kinds: a quarter of a second."""
    if not isinstance(value, str):
        return _numbers(kind, np.full(count, value, kind.to_pandas_dtype()))
    text = value.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(text))
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(text * count)])


def _binary(kind: pa.DataType, kernels: Any, data: Array, at: Array, lengths: Array) -> pa.Array:
    count = int(at.size)
    total = int(np.maximum(lengths, 0).sum(dtype=np.int64))
    if total > MAX_INT32:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{total} bytes are too many for one Arrow column")
    offsets = np.empty(count + 1, np.int32)
    out = np.empty(total, np.uint8)
    validity = np.zeros((count + 7) // 8, np.uint8)
    nulls = kernels.gather(data, at, lengths, offsets, out, validity)
    present = pa.py_buffer(validity) if nulls else None
    return pa.Array.from_buffers(kind, count, [present, pa.py_buffer(offsets), pa.py_buffer(out)], nulls)


def _headers(kind: pa.DataType, kernels: Any, records: Records) -> pa.Array:
    """Null, as in the official source, where a record has no headers."""
    counts = records.headers_count
    total = int(counts.sum(dtype=np.int64))
    key_at, value_at = np.empty(total, np.int64), np.empty(total, np.int64)
    key_length, value_length = np.empty(total, np.int32), np.empty(total, np.int32)
    found = kernels.index_headers(records.data, records.headers_at, counts, key_at, key_length, value_at, value_length)
    if found != total:
        offset = int(records.offsets[max(-found - 1, 0)])
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the headers of the record at offset {offset} cannot be read")
    structure = kind.value_type
    keys = _binary(structure.field(0).type, kernels, records.data, key_at, key_length)
    values = _binary(structure.field(1).type, kernels, records.data, value_at, value_length)
    pairs = pa.StructArray.from_arrays([keys, values], fields=[structure.field(0), structure.field(1)])
    offsets = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    present = pa.py_buffer(np.packbits(counts > 0, bitorder="little"))
    return pa.Array.from_buffers(kind, counts.size, [present, pa.py_buffer(offsets)], children=[pairs])
