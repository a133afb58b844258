"""Walking over the batches of a segment file by their headers."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.errors import CorruptionError, KafkaError
from tidelog.storage import File
from tidelog.wire.batch import HEADER_SIZE, BatchHeader, read_header

LOOK_AHEAD_BYTES = 4096
"""Read at once by a look-up, which has an index entry's distance to go at most."""
WALK_BYTES = 64 * 1024
"""Read at once by a walk over many batches: small ones come by the hundred, of large ones only the header is read."""
VERIFY_BYTES = 1024 * 1024
"""Read at once where every byte is looked at."""


def headers(
    file: File, position: int, end: int, read_bytes: int = LOOK_AHEAD_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `position`, a batch's start, to `end`.

    For files whose batches were verified before: CorruptionError where there is no batch after all. A header's buffer
    may hold less than its batch; `read_batch` gets the whole of it.
    """
    buffer = b""
    buffer_start = position
    while position < end:
        within = position - buffer_start
        if within + HEADER_SIZE > len(buffer):
            buffer = file.read(position, min(read_bytes, end - position))
            buffer_start, within = position, 0
        header = header_at(file, buffer, within, position, end)
        yield position, header
        position += header.size


def header_at(file: File, buffer: bytes, within: int, position: int, end: int) -> BatchHeader:
    """The header in a buffer that was read from a file around a position; CorruptionError where there is none."""
    try:
        header = read_header(buffer, within)
    except KafkaError as error:
        raise CorruptionError(f"{file.path} at {position}: {error}") from None
    if position + header.size > end:
        raise CorruptionError(f"{file.path} at {position}: a batch of {header.size} bytes reaches beyond the end")
    return header


def read_batch(file: File, position: int, size: int) -> BatchHeader:
    """The header of one batch, with all of the batch in its buffer; CorruptionError unless its checksum is right."""
    try:
        header = read_header(file.read(position, size))
        if header.size == size and header.crc_matches():
            return header
    except KafkaError:
        pass
    raise CorruptionError(f"{file.path} at {position}: the batch is damaged")


def proven(file: File, position: int, header: BatchHeader) -> BatchHeader:
    """The same header, with all of its batch in its buffer; CorruptionError unless its checksum is right."""
    if header.position + header.size <= len(header.buffer) and header.crc_matches():
        return header
    return read_batch(file, position, header.size)


def valid_batches(file: File, expected_offset: int, last_possible_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from the start of a file up to the first that cannot be one.

    The checksum must be right, and offsets must rise from `expected_offset` and stay within what the segment can hold.
    The whole batch is in the header's buffer.
    """
    end = file.size
    position = 0
    buffer = b""
    buffer_start = 0
    while end - position >= HEADER_SIZE:
        within = position - buffer_start
        if within + HEADER_SIZE > len(buffer):
            buffer = file.read(position, VERIFY_BYTES)
            buffer_start, within = position, 0
        try:
            header = read_header(buffer, within)
        except KafkaError:
            return
        size = header.size
        if (
            position + size > end
            or header.last_offset_delta < 0
            or header.base_offset < expected_offset
            or header.last_offset > last_possible_offset
        ):
            return
        if within + size > len(buffer):
            buffer = file.read(position, max(size, VERIFY_BYTES))
            buffer_start = position
            header = read_header(buffer)
        if not header.crc_matches():
            return
        yield position, header
        expected_offset = header.next_offset
        position += size
