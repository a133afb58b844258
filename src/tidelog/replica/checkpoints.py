"""The offset checkpoints of a node's log directories: what a start begins from, written when it says something new."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidelog.errors import StorageError
from tidelog.log.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from tidelog.replica.partition import Partition

if TYPE_CHECKING:
    from tidelog.replica.replicas import Replicas


def write_all(replicas: Replicas) -> None:
    """Write each of them where it changed."""
    write_recovery_points(replicas)
    write_log_starts(replicas)
    write_high_watermarks(replicas)


def write_high_watermarks(replicas: Replicas) -> None:
    """Write `replication-offset-checkpoint`."""
    _write(replicas, HIGH_WATERMARKS, lambda partition: partition.kept_high_watermark)


def write_recovery_points(replicas: Replicas) -> None:
    """Write `recovery-point-offset-checkpoint`."""
    _write(replicas, RECOVERY_POINTS, lambda partition: partition.log.recovery_point)


def write_log_starts(replicas: Replicas) -> None:
    """Write `log-start-offset-checkpoint`."""
    _write(replicas, LOG_STARTS, log_start_of)


def log_start_of(partition: Partition) -> int | None:
    """Where a log starts, for the checkpoint; one whose start is its first segment's needs no entry."""
    log = partition.log
    return log.log_start_offset if log.log_start_offset > log.first_segment_offset else None


def _write(replicas: Replicas, name: str, offset_of: Callable[[Partition], int | None]) -> None:
    for directory in replicas.directories:
        if directory.online:
            try:
                directory.write_checkpoint(name, replicas.offsets_in(directory, name, offset_of))
            except StorageError as error:
                replicas.storage_failed(directory.storage, error)
