"""The keys of records, read with as little as possible for each of them: a compaction spends its time here.

A record is: length, attributes, time delta, offset delta, key length, key, value length, value, headers. All numbers
are zigzag; those of one byte, nearly all of them, are read in place.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from tidelog.errors import DecodeError
from tidelog.wire.varints import decode_signed, encode_signed

LONGEST_KEY_BYTES = 63
"""A longer key is held as its digest, which is longer than any key that is held itself: they cannot meet."""
_NULL = 1
"""A length of -1."""


def newest_offsets(data: bytes, position: int, end: int, count: int, base_offset: int) -> dict[bytes, int]:
    """The newest offset of every key among the records between two positions.

    DecodeError or IndexError where they are not as many records.
    """
    newest: dict[bytes, int] = {}
    for _ in range(count):
        byte = data[position]
        if byte < 128:
            following = position + 1 + (byte >> 1)
            position += 2
        else:
            high = data[position + 1]
            if high < 128:
                following = position + 2 + ((high << 7 | byte & 127) >> 1)
                position += 3
            else:
                length, position = decode_signed(data, position)
                following = position + length
                position += 1
        while data[position] > 127:
            position += 1
        position += 1
        byte = data[position]
        if byte < 128:
            delta = byte >> 1
            position += 1
        else:
            delta, position = decode_signed(data, position)
        byte = data[position]
        if byte < 128:
            length = byte >> 1
            position += 1
            if byte == _NULL:
                position = following
                continue
        else:
            length, position = decode_signed(data, position)
        key = data[position : position + length]
        if length > LONGEST_KEY_BYTES:
            key = blake2b(key).digest()
        newest[key] = base_offset + delta
        if not position + length < following <= end:
            raise DecodeError("a record that ends within itself")
        position = following
    if position != end:
        raise DecodeError(f"{end - position} bytes behind the last record")
    return newest


class Kept(NamedTuple):
    """Which records of a batch stay."""

    record_count: int
    pieces: list[tuple[int, int]]
    """Start and end of runs of records that stay."""
    has_tombstone: bool
    newest_delta: int
    """The largest time delta among them."""


def kept_records(  # noqa: C901, PLR0912, PLR0915 - numbers of one byte are read in place, as everywhere here
    data: bytes,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    latest: dict[bytes, int],
    keeps_tombstones: bool,
) -> Kept:
    """The records between two positions that no later record of the same key supersedes.

    Those without a key go (a topic may have been compacted only later), and tombstones unless they are to be kept.
    """
    newest_of = latest.get
    pieces: list[tuple[int, int]] = []
    kept = 0
    has_tombstone = False
    newest_delta = -(1 << 63)
    run_start = -1
    for _ in range(count):
        start = position
        byte = data[position]
        if byte < 128:
            following = position + 1 + (byte >> 1)
            position += 2
        else:
            high = data[position + 1]
            if high < 128:
                following = position + 2 + ((high << 7 | byte & 127) >> 1)
                position += 3
            else:
                length, position = decode_signed(data, position)
                following = position + length
                position += 1
        byte = data[position]
        if byte < 128:
            time_delta = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            time_delta, position = decode_signed(data, position)
        byte = data[position]
        if byte < 128:
            delta = byte >> 1
            position += 1
        else:
            delta, position = decode_signed(data, position)
        byte = data[position]
        if byte < 128:
            length = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            length, position = decode_signed(data, position)
        stays = False
        if length >= 0:
            key = data[position : position + length]
            if length > LONGEST_KEY_BYTES:
                key = blake2b(key).digest()
            if base_offset + delta >= newest_of(key, -1):
                is_tombstone = data[position + length] == _NULL
                stays = keeps_tombstones or not is_tombstone
                if is_tombstone and stays:
                    has_tombstone = True
        if not start < following <= end:
            raise DecodeError("a record that ends before it begins")
        position = following
        if stays:
            kept += 1
            newest_delta = max(newest_delta, time_delta)
            if run_start < 0:
                run_start = start
        elif run_start >= 0:
            pieces.append((run_start, start))
            run_start = -1
    if position != end:
        raise DecodeError(f"{end - position} bytes behind the last record")
    if run_start >= 0:
        pieces.append((run_start, end))
    return Kept(kept, pieces, has_tombstone, newest_delta)


def with_times_moved(data: bytes, pieces: list[tuple[int, int]], moved_ms: int) -> bytes:
    """The records of these pieces with `moved_ms` added to every time delta, for a batch with another base time."""
    out: list[bytes] = []
    for position, end in pieces:
        while position < end:
            length, position = decode_signed(data, position)
            following = position + length
            time_delta, rest = decode_signed(data, position + 1)
            body = data[position : position + 1] + encode_signed(time_delta + moved_ms) + data[rest:following]
            out += (encode_signed(len(body)), body)
            position = following
    return b"".join(out)
