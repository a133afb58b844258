"""The same functions as `decode_kernels` on numpy and Arrow alone: nothing to load or compile, slower on small records.

Finding where each record begins is a walk from one to the next; everything else is done for all records at once.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

NAME = "numpy"
Array = Any

_header = Struct(">qiibIhiqqqhii")


def scan_batches(data: Array, positions: Array, fields: Array) -> int:
    """See `decode_kernels.scan_batches`."""
    at = found = 0
    size = data.size
    view = memoryview(data)
    while size - at >= _header.size and found < positions.size:
        header = _header.unpack_from(view, at)
        if header[1] < 49 or header[3] != 2:
            return -(found + 1)
        if at + 12 + header[1] > size:
            break
        positions[found] = at
        fields[found] = header
        found += 1
        at += 12 + header[1]
    return found


def index_records(
    data: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    base_offsets: Array,
    base_timestamps: Array,
    append_timestamps: Array,
    first_offset: int,
    end_offset: int,
    batch_of: Array,
    offsets: Array,
    timestamps: Array,
    key_at: Array,
    key_length: Array,
    value_at: Array,
    value_length: Array,
    headers_at: Array,
    headers_count: Array,
) -> int:
    """See `decode_kernels.index_records`."""
    begins, limits = _walk(data, starts, ends, counts)
    if limits.size < int(counts.sum()):
        return -(int(limits.size) + 1)
    batches = np.repeat(np.arange(starts.size), counts)
    bad = np.zeros(begins.size, bool)
    timestamp_deltas, at = _varints(data, begins + 1, limits, bad)
    offset_deltas, at = _varints(data, at, limits, bad)
    key_lengths, keys_at = _varints(data, at, limits, bad)
    bad |= key_lengths > limits - keys_at
    value_lengths, values_at = _varints(data, keys_at + np.maximum(key_lengths, 0), limits, bad)
    bad |= value_lengths > limits - values_at
    counted, at = _varints(data, values_at + np.maximum(value_lengths, 0), limits, bad)
    bad |= (counted < 0) | (counted > (limits - at) >> 1)
    if bad.any():
        return -(int(np.argmax(bad)) + 1)
    found = base_offsets[batches] + offset_deltas
    wanted = np.flatnonzero((found >= first_offset) & (found < end_offset))
    appended = append_timestamps[batches]
    times = np.where(appended >= 0, appended, base_timestamps[batches] + timestamp_deltas)
    count = int(wanted.size)
    for out, column in (
        (batch_of, batches),
        (offsets, found),
        (timestamps, times),
        (key_at, keys_at),
        (key_length, np.maximum(key_lengths, -1)),
        (value_at, values_at),
        (value_length, np.maximum(value_lengths, -1)),
        (headers_at, at),
        (headers_count, counted),
    ):
        out[:count] = column[wanted]
    return count


def _walk(data: Array, starts: Array, ends: Array, counts: Array) -> tuple[Array, Array]:
    """Where the content of each record begins and ends; short of the first whose length cannot be."""
    view = memoryview(data)
    begins: list[int] = []
    limits: list[int] = []
    try:
        for at, limit, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
            for _ in range(count):
                byte = view[at]
                at += 1
                length = byte & 0x7F
                shift = 7
                while byte >= 0x80:
                    byte = view[at]
                    at += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
                end = at + (length >> 1)
                if length & 1 or end > limit or shift > 35:
                    raise IndexError
                begins.append(at)
                limits.append(end)
                at = end
    except IndexError:
        del begins[len(limits) :]
    return np.array(begins, np.int64), np.array(limits, np.int64)


def _varints(data: Array, at: Array, limits: Array, bad: Array) -> tuple[Array, Array]:
    """A number at each position, and the positions behind them; marks those which do not end in time as bad."""
    result = np.zeros(at.size, np.uint64)
    position = at.copy()
    left = np.arange(at.size)
    last = data.size - 1
    for shift in range(0, 70, 7):
        here = position[left]
        over = here >= limits[left]
        bad[left[over]] = True
        byte = data[np.clip(here, 0, max(last, 0))].astype(np.uint64)
        byte[over] = 0
        result[left] |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        position[left] += 1
        left = left[byte >= 0x80]
        if not left.size:
            break
    else:
        bad[left] = True
    return (result >> np.uint64(1)).astype(np.int64) ^ -(result & np.uint64(1)).astype(np.int64), position


def gather(data: Array, at: Array, lengths: Array, offsets: Array, out: Array, validity: Array) -> int:
    """See `decode_kernels.gather`. The parts are every second element of an array that lies over the data as it is."""
    count = at.size
    if not count:
        offsets[0] = 0
        return 0
    real = np.maximum(lengths, 0).astype(np.int64)
    edges = np.empty(2 * count, np.int64)
    edges[0::2] = at
    edges[1::2] = at + real
    between = pa.Array.from_buffers(
        pa.large_binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    ).take(pa.array(np.arange(0, 2 * count - 1, 2)))
    offsets[0] = 0
    np.cumsum(real, out=offsets[1 : count + 1])
    total = int(real.sum())
    if total:
        out[:total] = np.frombuffer(between.buffers()[2], np.uint8, total)
    present = lengths >= 0
    bits = np.packbits(present, bitorder="little")
    validity[: bits.size] = bits
    return int(count - present.sum())


def index_headers(
    data: Array, at: Array, counts: Array, key_at: Array, key_length: Array, value_at: Array, value_length: Array
) -> int:
    """See `decode_kernels.index_headers`. Goes through the n-th header of every record that has one, n by n."""
    starts = np.cumsum(counts) - counts
    limits = np.full(at.size, data.size, np.int64)
    position = at.copy()
    rows = np.flatnonzero(counts > 0)
    number = 0
    while rows.size:
        bad = np.zeros(rows.size, bool)
        slots = starts[rows] + number
        length, begin = _varints(data, position[rows], limits[rows], bad)
        bad |= (length < 0) | (length > limits[rows] - begin)
        key_at[slots] = begin
        key_length[slots] = length
        length, begin = _varints(data, begin + np.maximum(length, 0), limits[rows], bad)
        bad |= length > limits[rows] - begin
        if bad.any():
            return -(int(rows[np.argmax(bad)]) + 1)
        value_at[slots] = begin
        value_length[slots] = np.maximum(length, -1)
        position[rows] = begin + np.maximum(length, 0)
        number += 1
        rows = rows[counts[rows] > number]
    return int(counts.sum())
