"""The compression of a batch's records: gzip, snappy, lz4 and zstd, with a bound on what comes out."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.varints import Buffer


class Compression(IntEnum):
    """The number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
"""What one batch may decompress to unless a caller knows better."""

_SNAPPY_HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
_SNAPPY_MAGIC = _SNAPPY_HEADER[:8]
_SNAPPY_BLOCK_BYTES = 32 * 1024
_FIRST_GUESS_BYTES = 64 * 1024


def compress(kind: int, data: Buffer) -> Buffer:
    """The data in the form a Java client would send it."""
    if kind == Compression.NONE:
        return data
    import cramjam

    if kind == Compression.GZIP:
        return bytes(cramjam.gzip.compress(data, level=6))
    if kind == Compression.SNAPPY:
        return _compress_snappy(cramjam, data)
    if kind == Compression.LZ4:
        # Kafka's Java code reads only frames of independent blocks, and the library links them unless told not to.
        compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    if kind == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3))
    raise _unknown(kind)


def decompress(kind: int, data: Buffer, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The data as it was; INVALID_RECORD when it cannot be read or would be more than `max_bytes`."""
    if kind == Compression.NONE:
        return bytes(data)
    import cramjam

    try:
        if kind == Compression.GZIP:
            return _decompress_growing(cramjam.gzip.decompress_into, data, max_bytes)
        if kind == Compression.SNAPPY:
            return _decompress_snappy(cramjam, data, max_bytes)
        if kind == Compression.LZ4:
            return _decompress_growing(cramjam.lz4.decompress_into, data, max_bytes)
        if kind == Compression.ZSTD:
            return _decompress_growing(cramjam.zstd.decompress_into, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"compressed records cannot be read: {error}") from None
    raise _unknown(kind)


def _decompress_growing(decompress_into: Callable[[Any, bytearray], int], data: Buffer, max_bytes: int) -> bytes:
    """Decompress into a buffer that is made larger until it fits, and never larger than the bound.

    The library's own growing buffer has no bound, and the sizes inside the formats are the sender's word.
    """
    size = min(max_bytes, max(_FIRST_GUESS_BYTES, 6 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
        except Exception as error:
            if "failed to write whole buffer" not in str(error):
                raise
            if size >= max_bytes:
                raise _too_large(max_bytes) from None
            size = min(max_bytes, size * 6)
            continue
        del out[written:]
        return bytes(out)


def _compress_snappy(cramjam: Any, data: Buffer) -> bytes:
    """The framing of the Java library (xerial): a header, then blocks with their length before them."""
    view = memoryview(data)
    chunks: list[bytes] = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        chunks += (len(block).to_bytes(4, "big"), block)
    return b"".join(chunks)


def _decompress_snappy(cramjam: Any, data: Buffer, max_bytes: int) -> bytes:
    """Both forms in use: the Java library's framing, and one raw block as librdkafka sends it."""
    view = memoryview(data)
    if bytes(view[:8]) != _SNAPPY_MAGIC:
        return _decompress_snappy_block(cramjam, view, max_bytes)
    out: list[bytes] = []
    total = 0
    position = len(_SNAPPY_HEADER)
    while position < len(view):
        if bytes(view[position : position + 8]) == _SNAPPY_MAGIC:  # streams may be written one behind the other
            position += len(_SNAPPY_HEADER)
            continue
        size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if size > len(view) - position:
            raise KafkaError(ErrorCode.INVALID_RECORD, "compressed records cannot be read: a snappy block is cut short")
        block = view[position : position + size]
        total += cramjam.snappy.decompress_raw_len(block)
        if total > max_bytes:
            raise _too_large(max_bytes)
        out.append(_decompress_snappy_block(cramjam, block, max_bytes))
        position += size
    return b"".join(out)


def _decompress_snappy_block(cramjam: Any, block: memoryview, max_bytes: int) -> bytes:
    """A block names its size first, so the bound is checked before anything is made."""
    size = cramjam.snappy.decompress_raw_len(block)
    # Snappy's densest element copies 64 bytes and takes 3, so no honest block claims much over 21 times its size.
    if size > max_bytes or size > 24 * len(block) + 64:
        raise _too_large(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _too_large(max_bytes: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"compressed records hold more than {max_bytes} bytes")


def _unknown(kind: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {kind}")
