"""The inner loops over records, compiled by numba. `decode_fallback` has the same functions on numpy alone.

Compiled code is kept on the disk, since compiling takes seconds: see kernel_cache.py. Every function checks bounds
itself, because compiled code would read past the end without a word; what it returns below 0 is the complaint
-(record + 1).
"""

# mypy: disable-error-code="no-untyped-call, call-arg, unreachable, return-value, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from tidelog.spark.kernel_cache import KEPT
from tidelog.spark.kernel_copy import copy_bytes

NAME = "numba"

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
"""What came from a socket may be read-only; without a signature such an array would be compiled for a second time."""
_INT64S = types.int64[::1]
_INT32S = types.int32[::1]
_OUT = types.uint8[::1]


@njit(types.Tuple((types.int64, types.int64))(_BYTES, types.int64, types.int64), cache=KEPT, nogil=True)
def _varint(data: Any, at: int, end: int) -> Any:
    """A zigzag number of at most 64 bits and the position behind it, which is -1 when it does not end in time."""
    result = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < np.uint64(70):
        byte = np.uint64(data[at])
        at += 1
        result |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(result >> np.uint64(1)) ^ -np.int64(result & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@njit(
    types.int64(
        *(_BYTES, _INT64S, _INT64S, _INT64S, _INT64S, _INT64S, _INT64S, types.int64, types.int64),
        *(_INT32S, _INT64S, _INT64S, _INT64S, _INT32S, _INT64S, _INT32S, _INT64S, _INT32S),
    ),
    cache=KEPT,
    nogil=True,
)
def index_records(
    data: Any,
    starts: Any,
    ends: Any,
    counts: Any,
    base_offsets: Any,
    base_timestamps: Any,
    append_timestamps: Any,
    first_offset: int,
    end_offset: int,
    batch_of: Any,
    offsets: Any,
    timestamps: Any,
    key_at: Any,
    key_length: Any,
    value_at: Any,
    value_length: Any,
    headers_at: Any,
    headers_count: Any,
) -> int:
    """Where every wanted record's parts are: fills the arrays after `end_offset` and returns how many records that is.

    `append_timestamps` is below 0 where records have times of their own. A length of -1 means null.
    """
    row = 0
    seen = 0
    for batch in range(starts.size):
        at = starts[batch]
        limit = ends[batch]
        base_offset = base_offsets[batch]
        base_timestamp = base_timestamps[batch]
        append_timestamp = append_timestamps[batch]
        for _ in range(counts[batch]):
            seen += 1
            length, at = _varint(data, at, limit)
            if at < 0 or length < 0 or length > limit - at:
                return -seen
            end = at + length
            at += 1  # attributes, of which none is in use
            timestamp_delta, at = _varint(data, at, end)
            if at < 0:
                return -seen
            offset_delta, at = _varint(data, at, end)
            if at < 0:
                return -seen
            length, at = _varint(data, at, end)
            if at < 0 or length > end - at:
                return -seen
            key_at[row] = at
            key_length[row] = max(length, -1)
            at += max(length, 0)
            length, at = _varint(data, at, end)
            if at < 0 or length > end - at:
                return -seen
            value_at[row] = at
            value_length[row] = max(length, -1)
            at += max(length, 0)
            length, at = _varint(data, at, end)
            if at < 0 or length < 0 or length > (end - at) >> 1:
                return -seen
            headers_at[row] = at
            headers_count[row] = length
            offset = base_offset + offset_delta
            offsets[row] = offset
            timestamps[row] = append_timestamp if append_timestamp >= 0 else base_timestamp + timestamp_delta
            batch_of[row] = batch
            if first_offset <= offset < end_offset:
                row += 1
            at = end
    return row


@njit(types.int64(_BYTES, _INT64S, _INT32S, _INT32S, _OUT, _OUT), cache=KEPT, nogil=True)
def gather(data: Any, at: Any, lengths: Any, offsets: Any, out: Any, validity: Any) -> int:
    """Copy the parts one behind the other as Arrow wants them; returns how many are null. `validity` begins as 0."""
    position = 0
    nulls = 0
    for row in range(at.size):
        offsets[row] = position
        length = np.int64(lengths[row])
        if length < 0:
            nulls += 1
            continue
        validity[row >> 3] |= np.uint8(1 << (row & 7))
        copy_bytes(out, np.int64(position), data, np.int64(at[row]), length)
        position += length
    offsets[at.size] = position
    return nulls


@njit(types.int64(_BYTES, _INT64S, _INT32S, _INT64S, _INT32S, _INT64S, _INT32S), cache=KEPT, nogil=True)
def index_headers(
    data: Any, at: Any, counts: Any, key_at: Any, key_length: Any, value_at: Any, value_length: Any
) -> int:
    """Where the keys and values of all headers are, record after record; returns how many headers that is."""
    found = 0
    end = data.size
    for row in range(at.size):
        position = at[row]
        for _ in range(counts[row]):
            length, position = _varint(data, position, end)
            if position < 0 or length < 0 or length > end - position:
                return -(row + 1)
            key_at[found] = position
            key_length[found] = length
            position += length
            length, position = _varint(data, position, end)
            if position < 0 or length > end - position:
                return -(row + 1)
            value_at[found] = position
            value_length[found] = max(length, -1)
            position += max(length, 0)
            found += 1
    return found


@njit(types.int64(_BYTES, types.int64, types.int64), cache=KEPT, nogil=True)
def _big_endian(data: Any, at: int, size: int) -> int:
    """A signed number of `size` bytes."""
    result = np.uint64(0)
    for index in range(size):
        result = (result << np.uint64(8)) | np.uint64(data[at + index])
    spare = np.uint64(64 - 8 * size)
    return np.int64(result << spare) >> np.int64(spare)


@njit(types.int64(_BYTES, _INT64S, types.int64[:, ::1]), cache=KEPT, nogil=True)
def scan_batches(data: Any, positions: Any, fields: Any) -> int:
    """The headers of the whole batches in `data`: their positions, and the 13 fields of each as a row of `fields`.

    Returns how many there are, at most as many as there is room for; -(n + 1) when the n-th cannot be a batch.
    """
    at = 0
    found = 0
    while data.size - at >= 61 and found < positions.size:
        length = _big_endian(data, at + 8, 4)
        if length < 49 or data[at + 16] != 2:
            return -(found + 1)
        if at + 12 + length > data.size:
            return found
        positions[found] = at
        fields[found, 0] = _big_endian(data, at, 8)
        fields[found, 1] = length
        fields[found, 2] = _big_endian(data, at + 12, 4)
        fields[found, 3] = 2
        fields[found, 4] = _big_endian(data, at + 17, 4) & 0xFFFFFFFF
        fields[found, 5] = _big_endian(data, at + 21, 2)
        fields[found, 6] = _big_endian(data, at + 23, 4)
        fields[found, 7] = _big_endian(data, at + 27, 8)
        fields[found, 8] = _big_endian(data, at + 35, 8)
        fields[found, 9] = _big_endian(data, at + 43, 8)
        fields[found, 10] = _big_endian(data, at + 51, 2)
        fields[found, 11] = _big_endian(data, at + 53, 4)
        fields[found, 12] = _big_endian(data, at + 57, 4)
        found += 1
        at += 12 + length
    return found
