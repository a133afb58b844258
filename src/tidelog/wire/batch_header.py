"""Record batch v2: its header, its checksum, and what a broker writes into it on the way to the log.

     0 base offset    16 magic              27 base timestamp   51 producer epoch   61 records
     8 length         17 CRC-32C            35 max timestamp    53 base sequence
    12 leader epoch   21 attributes         43 producer id      57 record count
                      23 last offset delta

The length counts what comes after it; the checksum covers everything after itself, so offset and leader epoch can be
written without touching it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.crc import crc32c
from tidelog.wire.varints import Buffer

HEADER_SIZE = 61
LENGTH_END = 12
"""Base offset and length: what a batch's length does not count."""
CRC_START = 21
CURRENT_MAGIC = 2
MAX_INT32 = 0x7FFFFFFF
NO_PRODUCER_ID = -1

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

_header = Struct(">qiibIhiqqqhii")
_length = Struct(">qiib")
_offset = Struct(">q")
_epoch = Struct(">i")
_crc = Struct(">I")
_attributes = Struct(">h")
_producer = Struct(">qhi")
_PRODUCER_AT = 43
_new_object = object.__new__


class BatchHeader:
    """The header of the batch at a position of a buffer. Reading it checks neither the checksum nor the records."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "length",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
    )
    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    """0 for a batch that compaction emptied; it is kept for its producer's sequence."""
    buffer: Buffer
    position: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also where compaction removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset of whatever comes after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, which starts again at 0 after 2^31 - 1; -1 without a producer id."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & MAX_INT32

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records have the time of their append, which is then the max timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether it waits for its transaction's end before a read_committed reader may see it."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds a marker for the log's own use instead of a client's records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones in it (KIP-534); it then stands in the base timestamp's place."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def newest_record_timestamp(self) -> int:
        """The newest time of its records; -1 when compaction left none, whatever the max timestamp still says."""
        return self.max_timestamp if self.record_count else -1

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it, so that its sequence counts."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def data(self) -> memoryview:
        """The whole batch, without copying; CORRUPT_MESSAGE when the buffer ends before it."""
        end = self.position + LENGTH_END + self.length
        if end > len(self.buffer):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a record batch is cut short")
        return memoryview(self.buffer)[self.position : end]

    @property
    def payload(self) -> memoryview:
        """The records as they are stored, compressed or not."""
        return self.data[HEADER_SIZE:]

    def crc_matches(self) -> bool:
        """Whether the stored checksum is that of the bytes."""
        return crc32c(self.data[CRC_START:], 0) == self.crc

    def __repr__(self) -> str:
        return (
            f"BatchHeader(offsets {self.base_offset}..{self.last_offset}, epoch {self.partition_leader_epoch}, "
            f"{self.record_count} records, {self.size} bytes, producer {self.producer_id}/{self.producer_epoch}"
            f"/{self.base_sequence}, attributes {self.attributes:#x})"
        )


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at a position; only its 61 bytes need to be there.

    Message sets of magic 0 and 1 are recognised and refused as INVALID_RECORD (no broker of Kafka 4 writes them);
    anything else that cannot be a batch is CORRUPT_MESSAGE.
    """
    header = _new_object(BatchHeader)
    if len(buffer) - position < HEADER_SIZE:
        _refuse_short(buffer, position)
    (
        header.base_offset,
        header.length,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    ) = _header.unpack_from(buffer, position)
    if header.magic != CURRENT_MAGIC:
        _refuse_magic(header.magic)
    if header.length < HEADER_SIZE - LENGTH_END:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch with a length of {header.length}")
    header.buffer = buffer
    header.position = position
    return header


def iterate_batches(buffer: Buffer, position: int = 0, *, allow_partial: bool = False) -> Iterator[BatchHeader]:
    """The batches one behind the other up to the end of the buffer.

    A batch cut short at the end is CORRUPT_MESSAGE, or is left out with `allow_partial`: an answer to Fetch may end so.
    """
    end = len(buffer)
    while position < end:
        if end - position < HEADER_SIZE and allow_partial:
            return
        header = read_header(buffer, position)
        position += LENGTH_END + header.length
        if position > end:
            if allow_partial:
                return
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"a record batch is cut short: {position - end} of {header.size} bytes missing",
            )
        yield header


def check_crc(header: BatchHeader) -> None:
    """CORRUPT_MESSAGE unless the checksum is right."""
    if not header.crc_matches():
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the checksum of the batch at offset {header.base_offset} is wrong"
        )


def check_produced(header: BatchHeader) -> None:
    """INVALID_RECORD where a client's batch contradicts itself; what Kafka's LogValidator asks of a header."""
    count = header.record_count
    if header.last_offset_delta < 0 or count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a batch of {count} records, last offset +{header.last_offset_delta}"
        )
    if header.last_offset_delta + 1 != count:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a batch of {count} records that spans {header.last_offset_delta + 1} offsets"
        )
    if header.attributes & CONTROL:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch of producer {header.producer_id} without a sequence")
    if header.attributes & COMPRESSION_MASK > 4:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {header.compression}")


def stamp(header: BatchHeader, base_offset: int, leader_epoch: int) -> None:
    """Write the offset and epoch the log gives to a batch into the buffer, which must be writable, and the header."""
    _offset.pack_into(header.buffer, header.position, base_offset)
    _epoch.pack_into(header.buffer, header.position + 12, leader_epoch)
    header.base_offset = base_offset
    header.partition_leader_epoch = leader_epoch


def stamp_log_append_time(header: BatchHeader, now_ms: int) -> None:
    """Make `now_ms` the time of every record, in place; the checksum is computed again."""
    header.attributes |= LOG_APPEND_TIME
    header.max_timestamp = now_ms
    _attributes.pack_into(header.buffer, header.position + 21, header.attributes)
    _offset.pack_into(header.buffer, header.position + 35, now_ms)
    header.crc = crc32c(header.data[CRC_START:], 0)
    _crc.pack_into(header.buffer, header.position + 17, header.crc)


def pack_header(
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    payload: Buffer,
) -> bytes:
    """A whole batch: the header with length and checksum, and the payload behind it."""
    head = bytearray(HEADER_SIZE)
    _header.pack_into(
        head,
        0,
        base_offset,
        HEADER_SIZE - LENGTH_END + len(payload),
        partition_leader_epoch,
        CURRENT_MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    _crc.pack_into(head, 17, crc32c(payload, crc32c(head[CRC_START:], 0)))
    return b"".join((head, payload))


def _refuse_short(buffer: Buffer, position: int) -> None:
    """Old message sets may be shorter than today's header: they are named before shortness is."""
    if len(buffer) - position >= _length.size:
        _refuse_magic(_length.unpack_from(buffer, position)[3])
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(buffer) - position} bytes are too few for a record batch")


def _refuse_magic(magic: int) -> None:
    if magic in (0, 1):
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"message format {magic} is no longer supported, only {CURRENT_MAGIC}"
        )
    if magic != CURRENT_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch with magic {magic}")


def read_producer(batch: Buffer) -> tuple[int, int, int]:
    """Producer id, its epoch and the first sequence of a batch that has its whole header."""
    producer: tuple[int, int, int] = _producer.unpack_from(batch, _PRODUCER_AT)
    return producer
