"""Offset, time and transaction indexes, held against their segment where it lies beside them."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tidelog.cli.dumps import Damage, Found, Item, is_zeros, unused
from tidelog.cli.records_text import time_text
from tidelog.errors import KafkaError
from tidelog.wire.batch import HEADER_SIZE, read_header

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_TRANSACTION_ENTRY = Struct(">hqqqq")


class _Batch(NamedTuple):
    """What an index can be held against."""

    last_offset: int
    position: int
    max_timestamp: int


def read_offset_index(content: memoryview, path: str) -> Iterator[Item]:
    """Entries (offset, position); each must name the last offset of a batch and where that batch begins."""
    base_offset = _base_offset(path)
    batches = _segment_beside(path)
    by_position = {batch.position: batch for batch in batches} if batches is not None else None
    before = (-1, -1)
    for at, relative, position in _entries(content, _OFFSET_ENTRY):
        offset = base_offset + relative
        if (relative, position) == (0, 0) and _is_unused(content, at, _OFFSET_ENTRY):
            yield from _unused(content, at)
            return
        yield Found({"at": at, "offset": offset, "position": position}, f"@{at}  offset {offset}  position {position}")
        if offset <= before[0] or position <= before[1]:
            yield Damage(at, f"offset {offset} at {position} comes after offset {before[0]} at {before[1]}")
        elif by_position is not None:
            batch = by_position.get(position)
            if batch is None:
                yield Damage(at, f"no batch begins at position {position} of the segment")
            elif batch.last_offset != offset:
                yield Damage(at, f"the batch at {position} ends with offset {batch.last_offset}, not {offset}")
        before = (offset, position)
    yield from _torn(content, _OFFSET_ENTRY)


def read_time_index(content: memoryview, path: str) -> Iterator[Item]:
    """Entries (timestamp, offset); the batch with that offset must have that greatest timestamp."""
    base_offset = _base_offset(path)
    batches = _segment_beside(path)
    before = (-1, -1)
    for at, timestamp, relative in _entries(content, _TIME_ENTRY):
        offset = base_offset + relative
        if (timestamp, relative) == (0, 0) and _is_unused(content, at, _TIME_ENTRY):
            yield from _unused(content, at)
            return
        fields = {"at": at, "timestamp": timestamp, "offset": offset}
        yield Found(fields, f"@{at}  {time_text(timestamp)}  offset {offset}")
        if timestamp <= before[0] or offset < before[1]:
            yield Damage(at, f"time {timestamp} at offset {offset} comes after {before[0]} at {before[1]}")
        elif batches is not None:
            slot = bisect_left(batches, offset, key=lambda batch: batch.last_offset)
            if slot == len(batches):
                yield Damage(at, f"offset {offset} is not in the segment")
            elif batches[slot].max_timestamp != timestamp:
                yield Damage(at, f"the batch with offset {offset} has the time {batches[slot].max_timestamp}")
        before = (timestamp, offset)
    yield from _torn(content, _TIME_ENTRY)


def read_transaction_index(content: memoryview, path: str) -> Iterator[Item]:
    """Aborted transactions."""
    for at, version, producer_id, first, last, stable in _entries(content, _TRANSACTION_ENTRY):
        if version != 0:
            yield Damage(at, f"an entry of version {version}")
            return
        fields = {
            "at": at,
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": stable,
        }
        yield Found(fields, f"@{at}  producer {producer_id}  aborted offsets {first}-{last}  stable to {stable}")
    yield from _torn(content, _TRANSACTION_ENTRY)


def _entries(content: memoryview, layout: Struct) -> Iterator[tuple[int, ...]]:
    for number in range(len(content) // layout.size):
        yield number * layout.size, *layout.unpack_from(content, number * layout.size)


def _is_unused(content: memoryview, at: int, layout: Struct) -> bool:
    """Whether an entry of zeros is none: the first of several may be meant, when its segment begins with offset 0."""
    return at > 0 or (len(content) > layout.size and is_zeros(content))


def _unused(content: memoryview, at: int) -> Iterator[Item]:
    yield unused(content, at) if is_zeros(content[at:]) else Damage(at, "an entry of zeros, with others behind it")


def _torn(content: memoryview, layout: Struct) -> Iterator[Item]:
    rest = len(content) % layout.size
    if rest:
        yield Damage(len(content) - rest, f"{rest} bytes are left of an entry of {layout.size}")


def _base_offset(path: str) -> int:
    digits = os.path.basename(path).split(".")[0]
    return int(digits) if digits.isdigit() else 0


def _segment_beside(path: str) -> list[_Batch] | None:
    """The batches of the segment that an index belongs to, by last offset; None when it is not there."""
    name = os.path.basename(path)
    segment = os.path.join(os.path.dirname(path), name.replace(".timeindex", ".log").replace(".index", ".log"))
    if segment == path or not os.path.isfile(segment):
        return None
    batches = []
    position = 0
    size = os.path.getsize(segment)
    with open(segment, "rb") as file:
        while position + HEADER_SIZE <= size:
            file.seek(position)
            try:
                header = read_header(file.read(HEADER_SIZE))
            except KafkaError:
                break
            batches.append(_Batch(header.last_offset, position, header.max_timestamp))
            position += header.size
    return batches
