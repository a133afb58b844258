"""`.snapshot`: the producer state of a log at an offset, so that after a stop only what follows need be read again.

    version (int16, 1), CRC-32C of the rest (uint32), count (int32), entries of 46 bytes

Of a producer's batches only the newest is kept, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

from tidelog.errors import CorruptionError
from tidelog.log.producer_state import NO_OFFSET, NO_SEQUENCE, SEQUENCE_MAX, KnownBatch, Producer
from tidelog.wire.crc import crc32c

_HEADER = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_VERSION = 1


def to_bytes(producers: Iterable[Producer]) -> bytes:
    """The content of a snapshot."""
    entries = []
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        entries.append(
            _ENTRY.pack(
                producer.producer_id,
                producer.epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
        )
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEADER.pack(_VERSION, crc32c(body, 0)) + body


def from_bytes(data: bytes) -> list[Producer]:
    """The producers in a snapshot; CorruptionError when it is not whole."""
    try:
        version, crc = _HEADER.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEADER.size)
    except error:
        raise CorruptionError("a producer snapshot of a few bytes") from None
    body = data[_HEADER.size :]
    if version != _VERSION:
        raise CorruptionError(f"a producer snapshot of version {version}")
    if len(body) != _COUNT.size + count * _ENTRY.size or crc32c(body, 0) != crc:
        raise CorruptionError("a producer snapshot whose checksum does not fit")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> Producer:
    batches = []
    if last_offset >= 0:
        first_sequence = (last_sequence - offset_delta) & SEQUENCE_MAX
        batches = [KnownBatch(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp)]
    return Producer(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset, batches)
