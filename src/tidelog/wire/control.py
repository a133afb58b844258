"""Control records: markers that the log keeps for itself between the records of clients."""

from __future__ import annotations

import struct
from enum import IntEnum

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.batch_records import Record, build_batch
from tidelog.wire.varints import Buffer

_two_shorts = struct.Struct(">hh")
_marker = struct.Struct(">hi")


class ControlType(IntEnum):
    """What a control record is, from its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(kind: int) -> bytes:
    """The key of a control record of this type."""
    return _two_shorts.pack(0, kind)


def control_type(key: Buffer | None) -> int:
    """The type in a control record's key, which may be one that only a newer version knows."""
    try:
        _, kind = _two_shorts.unpack_from(key or b"")
    except struct.error:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control record without a type") from None
    return int(kind)


def build_end_marker(
    *,
    commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """The batch that ends a producer's transaction in a partition."""
    key = control_key(ControlType.COMMIT if commit else ControlType.ABORT)
    return build_batch(
        [Record(base_offset, timestamp, key, _marker.pack(0, coordinator_epoch))],
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def end_marker_coordinator_epoch(value: Buffer | None) -> int:
    """The coordinator's epoch in the value of a commit or abort marker."""
    try:
        _, epoch = _marker.unpack_from(value or b"")
    except struct.error:
        raise KafkaError(ErrorCode.INVALID_RECORD, "an end marker without a coordinator epoch") from None
    return int(epoch)
