"""What the log's tests share: a log over the simulated disk, producers' batches, and reading records back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.config import TopicConfig
from tidelog.effects import Flush
from tidelog.log import Log, LogRead
from tidelog.sim.disk import SimulatedDisk
from tidelog.storage import Storage
from tidelog.wire.batch import BatchHeader, Record, build_batch, build_end_marker, iterate_batches, iterate_records

DIRECTORY = "topic-0"
NOW = 1_700_000_000_000
DAY_MS = 86_400_000


def open_log(
    storage: Storage,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    start: int = 0,
    is_whole: bool = False,
    **settings: Any,
) -> Log:
    return Log.open(
        storage,
        DIRECTORY,
        TopicConfig(**settings),
        recovery_point=recovery_point,
        log_start_offset=start,
        clean=clean,
        is_whole=is_whole,
        now_ms=NOW,
        producer_expiry_ms=DAY_MS,
    )


def batch(
    values: Sequence[bytes | None] | int = 1, *, timestamp: int = NOW, key: bytes | None = b"k", **how: Any
) -> memoryview:
    """A producer's batch, writable as it comes from a socket: values, or so many of them."""
    if isinstance(values, int):
        values = [b"value-%d" % index for index in range(values)]
    records = [Record(index, timestamp, key, value) for index, value in enumerate(values)]
    return memoryview(bytearray(build_batch(records, **how)))


def produced(producer_id: int, sequence: int, count: int = 1, epoch: int = 0, **how: Any) -> memoryview:
    """An idempotent producer's batch."""
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **how)


def marker(producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> memoryview:
    return memoryview(
        bytearray(
            build_end_marker(
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                producer_id=producer_id,
                producer_epoch=epoch,
                timestamp=NOW,
            )
        )
    )


def append(log: Log, data: memoryview | None = None, epoch: int = 0, now_ms: int = NOW, **how: Any) -> int:
    """Append as leader; the first offset."""
    return log.append_as_leader(batch() if data is None else data, epoch, now_ms, **how).first_offset


def batches_of(read: LogRead) -> list[BatchHeader]:
    assert sum(part.length for part in read.parts) == read.size
    return list(iterate_batches(b"".join(part.read() for part in read.parts)))


def batches_in(log: Log, offset: int | None = None, max_bytes: int = 1 << 30) -> list[BatchHeader]:
    """Every batch of a log, read as a consumer would."""
    offset = log.log_start_offset if offset is None else offset
    found: list[BatchHeader] = []
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes, up_to_offset=log.log_end_offset)
        assert read.next_offset > offset, "a reader must get on"
        found += batches_of(read)
        offset = read.next_offset
    return found


def values_in(log: Log, max_bytes: int = 1 << 30) -> list[bytes | None]:
    start = log.log_start_offset
    return [
        record.value
        for header in batches_in(log, max_bytes=max_bytes)
        if not header.is_control
        for record in iterate_records(header)
        if record.offset >= start
    ]


def flush(log: Log) -> int:
    """Flush a log to the simulated medium as the runtime would; the recovery point."""
    disk = log.storage
    assert isinstance(disk, SimulatedDisk)
    end_offset = log.log_end_offset
    files, directories = log.files_to_flush()
    assert disk.apply_flush(Flush(0, disk, files, (), directories)) is None
    log.flushed_through(end_offset)
    return log.recovery_point
