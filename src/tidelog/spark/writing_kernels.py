"""Keys to partitions and rows to records, compiled by numba. `writing_fallback` has the same functions in plain Python.

Compiled code is kept on the disk, since compiling takes seconds: see kernel_cache.py.
"""

# mypy: disable-error-code="call-arg, unreachable"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidelog.spark.kernel_cache import KEPT
from tidelog.spark.kernel_copy import copy_bytes

NAME = "numba"


@njit(cache=KEPT, nogil=True)
def murmur2_partitions(data: Any, offsets: Any, present: Any, partition_count: int, out: Any) -> None:
    """The Java client's partition of each key (see wire/murmur2.py); rows without a key are left as they are."""
    multiplier = np.uint32(0x5BD1E995)
    for row in range(len(offsets) - 1):
        if not present[row]:
            continue
        start, end = offsets[row], offsets[row + 1]
        length = end - start
        value = np.uint32(0x9747B28C) ^ np.uint32(length)
        position = start
        while position + 4 <= end:
            word = (
                np.uint32(data[position])
                | np.uint32(data[position + 1]) << np.uint32(8)
                | np.uint32(data[position + 2]) << np.uint32(16)
                | np.uint32(data[position + 3]) << np.uint32(24)
            )
            word = np.uint32(word * multiplier)
            word = np.uint32(np.uint32(word ^ (word >> np.uint32(24))) * multiplier)
            value = np.uint32(np.uint32(value * multiplier) ^ word)
            position += 4
        if position < end:
            tail = np.uint32(0)
            for index in range(end - 1, position - 1, -1):
                tail = np.uint32(tail << np.uint32(8)) | np.uint32(data[index])
            value = np.uint32(np.uint32(value ^ tail) * multiplier)
        value = np.uint32(np.uint32(value ^ (value >> np.uint32(13))) * multiplier)
        value = np.uint32(value ^ (value >> np.uint32(15)))
        out[row] = np.int64(value & np.uint32(0x7FFFFFFF)) % partition_count


@njit(cache=KEPT, nogil=True)
def _varint_size(number: int) -> int:
    zigzag = (np.int64(number) << np.int64(1)) ^ (np.int64(number) >> np.int64(63))
    rest = np.uint64(zigzag)
    size = 1
    while rest >= np.uint64(128):
        rest >>= np.uint64(7)
        size += 1
    return size


@njit(cache=KEPT, nogil=True)
def _put_varint(out: Any, position: int, number: int) -> int:
    zigzag = (np.int64(number) << np.int64(1)) ^ (np.int64(number) >> np.int64(63))
    rest = np.uint64(zigzag)
    while rest >= np.uint64(128):
        out[position] = np.uint8((rest & np.uint64(127)) | np.uint64(128))
        rest >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(rest)
    return position + 1


@njit(cache=KEPT, nogil=True)
def _put_bytes(out: Any, position: int, data: Any, start: int, end: int, present: bool) -> int:
    if not present:
        out[position] = np.uint8(1)
        return position + 1
    position = _put_varint(out, position, end - start)
    copy_bytes(out, np.int64(position), data, np.int64(start), np.int64(end - start))
    return position + end - start


@njit(cache=KEPT, nogil=True)
def encode_records(
    rows: Any,
    timestamps: Any,
    key: Any,
    key_offsets: Any,
    key_present: Any,
    value: Any,
    value_offsets: Any,
    value_present: Any,
    header_offsets: Any,
    name: Any,
    name_offsets: Any,
    content: Any,
    content_offsets: Any,
    content_present: Any,
    limit_bytes: int,
    out: Any,
    chunk_ends: Any,
    chunk_rows: Any,
    chunk_times: Any,
) -> int:
    """Records of these rows, cut into chunks of at most `limit_bytes` (or one record); returns how many chunks.

    `header_offsets` may be empty: no row has headers. Of each chunk: where it ends in `out`, after how many rows, and
    its first and greatest timestamp.
    """
    chunks = 0
    position = 0
    chunk_start = 0
    first = 0
    with_headers = len(header_offsets) > 0
    for number in range(len(rows)):
        row = rows[number]
        key_size = key_offsets[row + 1] - key_offsets[row]
        value_size = value_offsets[row + 1] - value_offsets[row]
        if not key_present[row]:
            key_size = 0
        if not value_present[row]:
            value_size = 0
        body = 1 + key_size + value_size
        body += _varint_size(key_size) if key_present[row] else 1
        body += _varint_size(value_size) if value_present[row] else 1
        headers_start = 0
        headers_end = 0
        if with_headers:
            headers_start, headers_end = header_offsets[row], header_offsets[row + 1]
        body += _varint_size(headers_end - headers_start)
        for header in range(headers_start, headers_end):
            name_size = name_offsets[header + 1] - name_offsets[header]
            body += _varint_size(name_size) + name_size
            if content_present[header]:
                content_size = content_offsets[header + 1] - content_offsets[header]
                body += _varint_size(content_size) + content_size
            else:
                body += 1
        size = body + _varint_size(timestamps[row] - timestamps[rows[first]]) + _varint_size(number - first)
        if number > first and position - chunk_start + size + _varint_size(size) > limit_bytes:
            chunk_ends[chunks] = position
            chunk_rows[chunks] = number
            chunks += 1
            chunk_start = position
            first = number
            size = body + 2
        stamp = timestamps[row]
        if number == first:
            chunk_times[chunks, 0] = stamp
            chunk_times[chunks, 1] = stamp
        elif stamp > chunk_times[chunks, 1]:
            chunk_times[chunks, 1] = stamp
        position = _put_varint(out, position, size)
        out[position] = np.uint8(0)
        position = _put_varint(out, position + 1, stamp - timestamps[rows[first]])
        position = _put_varint(out, position, number - first)
        position = _put_bytes(out, position, key, key_offsets[row], key_offsets[row + 1], key_present[row])
        position = _put_bytes(out, position, value, value_offsets[row], value_offsets[row + 1], value_present[row])
        position = _put_varint(out, position, headers_end - headers_start)
        for header in range(headers_start, headers_end):
            position = _put_bytes(out, position, name, name_offsets[header], name_offsets[header + 1], True)
            position = _put_bytes(
                out,
                position,
                content,
                content_offsets[header],
                content_offsets[header + 1],
                content_present[header],
            )
    if len(rows):
        chunk_ends[chunks] = position
        chunk_rows[chunks] = len(rows)
        chunks += 1
    return chunks
