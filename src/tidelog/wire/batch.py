"""Record batches: the one door to headers, records, compression and control batches."""

from __future__ import annotations

from tidelog.wire.batch_header import CRC_START as CRC_START
from tidelog.wire.batch_header import HEADER_SIZE as HEADER_SIZE
from tidelog.wire.batch_header import BatchHeader as BatchHeader
from tidelog.wire.batch_header import check_crc as check_crc
from tidelog.wire.batch_header import check_produced as check_produced
from tidelog.wire.batch_header import iterate_batches as iterate_batches
from tidelog.wire.batch_header import read_header as read_header
from tidelog.wire.batch_header import stamp as stamp
from tidelog.wire.batch_header import stamp_log_append_time as stamp_log_append_time
from tidelog.wire.batch_records import Record as Record
from tidelog.wire.batch_records import build_batch as build_batch
from tidelog.wire.batch_records import iterate_records as iterate_records
from tidelog.wire.compression import MAX_DECOMPRESSED_BYTES as MAX_DECOMPRESSED_BYTES
from tidelog.wire.compression import Compression as Compression
from tidelog.wire.control import ControlType as ControlType
from tidelog.wire.control import build_end_marker as build_end_marker
from tidelog.wire.control import control_key as control_key
from tidelog.wire.control import control_type as control_type
from tidelog.wire.control import end_marker_coordinator_epoch as end_marker_coordinator_epoch
from tidelog.wire.crc import crc32c as crc32c
