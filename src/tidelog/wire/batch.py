"""Record batches: the one door to headers, records, compression and control batches."""

from __future__ import annotations

from tidelog.wire.batch_header import (
    CRC_START,
    HEADER_SIZE,
    BatchHeader,
    check_crc,
    check_produced,
    iterate_batches,
    read_header,
    stamp,
    stamp_log_append_time,
)
from tidelog.wire.batch_records import Record, build_batch, iterate_records
from tidelog.wire.compression import MAX_DECOMPRESSED_BYTES, Compression
from tidelog.wire.control import ControlType, build_end_marker, control_key, control_type, end_marker_coordinator_epoch
from tidelog.wire.crc import crc32c

__all__ = [
    "CRC_START",
    "HEADER_SIZE",
    "MAX_DECOMPRESSED_BYTES",
    "BatchHeader",
    "Compression",
    "ControlType",
    "Record",
    "build_batch",
    "build_end_marker",
    "check_crc",
    "check_produced",
    "control_key",
    "control_type",
    "crc32c",
    "end_marker_coordinator_epoch",
    "iterate_batches",
    "iterate_records",
    "read_header",
    "stamp",
    "stamp_log_append_time",
]
