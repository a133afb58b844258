"""The functions of `writing_kernels` without numba: the same results, many times slower."""

from __future__ import annotations

from typing import Any

from tidelog.wire.batch_records import Record, encode_record
from tidelog.wire.murmur2 import partition_for_key

NAME = "python"


def murmur2_partitions(data: Any, offsets: Any, present: Any, partition_count: int, out: Any) -> None:
    """See writing_kernels."""
    whole = data.tobytes()
    for row in range(len(offsets) - 1):
        if present[row]:
            out[row] = partition_for_key(whole[offsets[row] : offsets[row + 1]], partition_count)


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
    """See writing_kernels."""
    keys, values, names, contents = (memoryview(each) for each in (key, value, name, content))
    view = memoryview(out)
    chunks = position = chunk_start = first = 0

    def cut(data: memoryview, offsets: Any, present: Any, index: int) -> bytes | None:
        return bytes(data[offsets[index] : offsets[index + 1]]) if present is None or present[index] else None

    for number, row in enumerate(rows.tolist()):
        headers = [
            (
                (cut(names, name_offsets, None, index) or b"").decode(),
                cut(contents, content_offsets, content_present, index),
            )
            for index in (range(header_offsets[row], header_offsets[row + 1]) if len(header_offsets) else ())
        ]
        stamp = int(timestamps[row])
        record = Record(
            number,
            stamp,
            cut(keys, key_offsets, key_present, row),
            cut(values, value_offsets, value_present, row),
            headers,
        )
        encoded = encode_record(record, first, int(timestamps[rows[first]]))
        if number > first and position - chunk_start + len(encoded) > limit_bytes:
            chunk_ends[chunks], chunk_rows[chunks] = position, number
            chunks += 1
            chunk_start, first = position, number
            encoded = encode_record(record, first, stamp)
        if number == first:
            chunk_times[chunks] = stamp, stamp
        else:
            chunk_times[chunks, 1] = max(stamp, int(chunk_times[chunks, 1]))
        view[position : position + len(encoded)] = encoded
        position += len(encoded)
    if len(rows):
        chunk_ends[chunks], chunk_rows[chunks] = position, len(rows)
        chunks += 1
    return chunks
