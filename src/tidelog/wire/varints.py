"""Kafka's variable-length integers: unsigned in flexible messages, zigzag in records."""

from __future__ import annotations

from tidelog.errors import DecodeError

Buffer = bytes | bytearray | memoryview


def encode_unsigned(value: int) -> bytes:
    """Seven bits a byte, lowest first, the top bit set on all but the last."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_unsigned(data: Buffer, offset: int) -> tuple[int, int]:
    """(value, offset behind it), of at most 32 bits; IndexError at the end of the data, as for any other index."""
    value = data[offset]
    if value < 128:
        return value, offset + 1
    value &= 127
    for shift in (7, 14, 21, 28):
        offset += 1
        byte = data[offset]
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, offset + 1
    raise DecodeError("a variable-length integer is longer than 32 bits")


def encode_signed(value: int) -> bytes:
    """Zigzag, for record fields of 32 or 64 bits."""
    return encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_signed(data: Buffer, offset: int) -> tuple[int, int]:
    """(value, offset behind it), of at most 64 bits, zigzag; IndexError at the end of the data."""
    byte = data[offset]
    offset += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), offset
    value = byte & 127
    shift = 7
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise DecodeError("a variable-length integer is longer than 64 bits")
    if value > 0xFFFFFFFFFFFFFFFF:
        raise DecodeError("a variable-length integer is longer than 64 bits")
    return (value >> 1) ^ -(value & 1), offset


_ONE_BYTE = [bytes((value,)) for value in range(128)]
