"""The records inside a batch: reading them, and building a batch of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.wire.batch_header import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    pack_header,
)
from tidelog.wire.compression import MAX_DECOMPRESSED_BYTES, compress, decompress
from tidelog.wire.varints import decode_signed, encode_signed

SMALLEST_RECORD_BYTES = 7
"""Length, attributes, two deltas, two lengths and a count, a byte each."""
Headers = Sequence[tuple[str, bytes | None]]


class Record:
    """One record. Key, value and header values are None where they are null."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.offset, self.timestamp, self.key, self.value, list(self.headers)) == (
            other.offset,
            other.timestamp,
            other.key,
            other.value,
            list(other.headers),
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r}, {list(self.headers)!r})"


def iterate_records(  # noqa: PLR0912 - lengths of one byte are read in place: a call for each would double the cost
    batch: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[Record]:
    """The records of a batch, decompressed; INVALID_RECORD at the first that is malformed or when the count is wrong.

    `max_bytes` bounds what the batch may decompress to. The checksum is not checked here.
    """
    data = decompress(batch.compression, batch.payload, max_bytes)
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    size = len(data)
    if batch.record_count < 0 or batch.record_count * SMALLEST_RECORD_BYTES > size:
        raise _malformed(batch, f"{batch.record_count} records in {size} bytes")
    position = 0
    try:
        for _ in range(batch.record_count):
            length, position = decode_signed(data, position)
            end = position + length
            if length < 0 or end > size:
                raise _malformed(batch, f"a record of {length} bytes")
            position += 1  # attributes, of which none is in use
            byte = data[position]
            if byte < 128:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                timestamp_delta, position = decode_signed(data, position)
            byte = data[position]
            if byte < 128:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = decode_signed(data, position)
            byte = data[position]
            if byte < 128:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                length, position = decode_signed(data, position)
            key = None
            if length >= 0:
                key = data[position : position + length]
                position += length
            byte = data[position]
            if byte < 128:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                length, position = decode_signed(data, position)
            value = None
            if length >= 0:
                value = data[position : position + length]
                position += length
            byte = data[position]
            headers: Headers = ()
            if byte:
                headers, position = _read_headers(data, position, end)
            else:
                position += 1
            if position != end:
                raise _malformed(batch, f"a record that ends {position - end:+d} bytes from where it says")
            yield Record(
                base_offset + offset_delta,
                base_timestamp + timestamp_delta if append_time is None else append_time,
                key,
                value,
                headers,
            )
    except (IndexError, UnicodeDecodeError, DecodeError) as error:
        raise _malformed(batch, str(error)) from None
    if position != size:
        raise _malformed(batch, f"{size - position} bytes behind the last record")


def _read_headers(data: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = decode_signed(data, position)
    if count < 0 or count > (end - position) // 2:
        raise DecodeError(f"{count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, position = decode_signed(data, position)
        if length < 0:
            raise DecodeError("a header without a key")
        name = data[position : position + length].decode()
        position += length
        length, position = decode_signed(data, position)
        value = None
        if length >= 0:
            value = data[position : position + length]
            position += length
        headers.append((name, value))
    return headers, position


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """One record as it stands in a batch."""
    key, value = record.key, record.value
    parts = [
        b"\0",
        encode_signed(record.timestamp - base_timestamp),
        encode_signed(record.offset - base_offset),
        b"\x01" if key is None else encode_signed(len(key)) + key,
    ]
    if value is None:
        parts.append(b"\x01")
    else:
        parts += (encode_signed(len(value)), value)
    if record.headers:
        parts.append(encode_signed(len(record.headers)))
        for name, content in record.headers:
            encoded = name.encode()
            parts += (encode_signed(len(encoded)), encoded)
            parts.append(b"\x01" if content is None else encode_signed(len(content)) + content)
    else:
        parts.append(b"\0")
    return encode_signed(sum(map(len, parts))) + b"".join(parts)


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    compression: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch of these records, in the order of their offsets.

    Compaction leaves gaps: it passes the offsets (`base_offset`, `last_offset`) that the batch had before, and for one
    that it emptied, `max_timestamp` too.
    """
    if base_offset is None:
        base_offset = records[0].offset
    if last_offset is None:
        last_offset = records[-1].offset
    attributes = compression
    base_timestamp = records[0].timestamp if records else (-1 if max_timestamp is None else max_timestamp)
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=-1)
    if is_transactional:
        attributes |= TRANSACTIONAL
    if is_control:
        attributes |= CONTROL
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
        base_timestamp = delete_horizon_ms
    payload = b"".join([encode_record(record, base_offset, base_timestamp) for record in records])
    return pack_header(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
        payload=compress(compression, payload) if records else payload,
    )


def _malformed(batch: BatchHeader, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"the batch at offset {batch.base_offset} is malformed: {reason}")
