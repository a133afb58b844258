"""What is checked before anything is written.

A producer's batch is judged by its header and checksum; its records are looked at only where the topic's settings ask
for it. All checks come before the first byte, so a refused append leaves no trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.batch import (
    HEADER_SIZE,
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    Compression,
    Record,
    build_batch,
    check_crc,
    check_produced,
    iterate_batches,
    iterate_records,
    read_header,
    stamp_log_append_time,
)

if TYPE_CHECKING:
    from tidelog.config import TopicConfig

_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_NO_TIMESTAMP = -1
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_SMALLEST_RECORD_BYTES = 7
"""Length, attributes, two deltas, two lengths and a count: a header that claims more would only use up offsets."""


class AppendRules:
    """A topic's settings as far as an append asks for them."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "is_compacted",
        "is_log_append_time",
        "max_batch_bytes",
        "segment_bytes",
        "validate_records",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_batch_bytes = config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.is_log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.is_compacted = config.is_compacted
        self.codec = _CODECS.get(config.compression_type)
        """What batches are compressed with; None leaves it to the producer."""
        self.validate_records = config.record_validation_enable
        """Look at every record, as Apache Kafka does."""


def check_as_leader(data: memoryview, rules: AppendRules, now_ms: int) -> BatchHeader:
    """The header of a producer's one batch (Produce v3 and up carry exactly one a partition), or why it is refused."""
    header = read_header(data)
    size = header.length + 12
    if size != len(data):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"exactly one record batch is allowed, and {len(data)} bytes hold a batch of {size} bytes"
            + (" and more" if size < len(data) else ""),
        )
    if header.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a produced batch begins with offset {header.base_offset}, not 0")
    _check_size(size, rules)
    check_crc(header)
    check_produced(header)
    attributes = header.attributes
    if attributes & _LOG_APPEND_TIME:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a producer may not set log append time")
    record_bytes = MAX_DECOMPRESSED_BYTES if attributes & _COMPRESSION_MASK else size - HEADER_SIZE
    if header.record_count * _SMALLEST_RECORD_BYTES > record_bytes:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{header.record_count} records cannot be in {size} bytes")
    if not rules.is_log_append_time:
        _check_time(header.base_timestamp, rules, now_ms)
        _check_time(header.max_timestamp, rules, now_ms)
    if rules.is_compacted or rules.validate_records:
        _check_records(header, rules, now_ms)
    return header


def check_internal(data: memoryview, rules: AppendRules) -> list[BatchHeader]:
    """The headers of batches this node made itself: coordinators' records, markers."""
    headers = list(iterate_batches(data))
    if not headers:
        raise KafkaError(ErrorCode.INVALID_RECORD, "no record batch")
    for header in headers:
        _check_size(header.size, rules)
        check_crc(header)
        if header.last_offset_delta < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch that ends at offset +{header.last_offset_delta}")
    return headers


def check_as_follower(data: memoryview) -> list[BatchHeader]:
    """The headers of the whole batches a leader sent. One cut short at the end is left out: it will be sent again."""
    headers = []
    next_offset = -1
    for header in iterate_batches(data, allow_partial=True):
        check_crc(header)
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"a batch with offsets {header.base_offset}..{header.last_offset} where {next_offset} was next",
            )
        next_offset = header.next_offset
        headers.append(header)
    return headers


def rewrite(data: memoryview, header: BatchHeader, rules: AppendRules, now_ms: int) -> tuple[memoryview, BatchHeader]:
    """The batch as the topic's settings want it stored: compressed anew, or with the time of its append."""
    if rules.codec is not None and rules.codec != header.compression:
        records = list(iterate_records(header))
        data = memoryview(
            bytearray(
                build_batch(
                    records,
                    compression=rules.codec,
                    producer_id=header.producer_id,
                    producer_epoch=header.producer_epoch,
                    base_sequence=header.base_sequence,
                    is_transactional=header.is_transactional,
                    is_control=header.is_control,
                    log_append_time_ms=now_ms if rules.is_log_append_time else None,
                )
            )
        )
        header = read_header(data)
        _check_size(header.size, rules)
    elif rules.is_log_append_time:
        stamp_log_append_time(header, now_ms)
    return data, header


def _check_size(size: int, rules: AppendRules) -> None:
    if size > rules.max_batch_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes, max.message.bytes is {rules.max_batch_bytes}"
        )
    if size > rules.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"a batch of {size} bytes, segment.bytes is {rules.segment_bytes}"
        )


def _check_time(timestamp: int, rules: AppendRules, now_ms: int) -> None:
    if timestamp != _NO_TIMESTAMP and (
        now_ms - timestamp > rules.before_max_ms or timestamp - now_ms > rules.after_max_ms
    ):
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is not within [{now_ms - rules.before_max_ms}, {now_ms + rules.after_max_ms}]",
        )


def _check_records(header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    """Look inside: keys where a topic is compacted, and that offsets, count and times are what the header says."""
    record: Record
    for index, record in enumerate(iterate_records(header)):
        if rules.is_compacted and record.key is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"record {index} has no key, and the topic is compacted")
        if record.offset - header.base_offset != index:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"record {index} has offset +{record.offset - header.base_offset}"
            )
        if not rules.is_log_append_time:
            _check_time(record.timestamp, rules, now_ms)
