"""What the tests of compaction share: keyed batches, a cleaning as the node does it, and what a reader ends up with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.log.support import NOW, append, batches_in, open_log
from tidelog.effects import Flush
from tidelog.log import Log, clean_job, clean_measure, names
from tidelog.log.clean_plan import CleanResult
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import Record, build_batch, iterate_records

Pair = tuple[bytes | None, bytes | None]


def open_compacted(disk: SimulatedDisk, **settings: Any) -> Log:
    return open_log(disk, **{"cleanup_policy": ("compact",), **settings})


def keyed(*pairs: Pair, timestamp: int = NOW, **how: Any) -> memoryview:
    """A producer's batch of keys and values."""
    records = [Record(index, timestamp, key, value) for index, (key, value) in enumerate(pairs)]
    return memoryview(bytearray(build_batch(records, **how)))


def append_transactional(log: Log, producer_id: int, sequence: int, *pairs: Pair) -> None:
    """A batch of a transaction that stays open."""
    how = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    append(log, keyed(*pairs, **how))


def append_all(log: Log, pairs: Sequence[Pair], *, roll_every: int = 0, now_ms: int = NOW) -> None:
    """One record a batch, and a new segment now and then."""
    for number, pair in enumerate(pairs, 1):
        log.append_as_leader(keyed(pair, timestamp=now_ms), 0, now_ms)
        if roll_every and number % roll_every == 0:
            log.roll(now_ms)


def clean(
    log: Log,
    cleaned_to: int | None = None,
    *,
    now_ms: int = NOW,
    max_keys: int = 1_000_000,
    io_bytes: int = 4096,
    stable: int | None = None,
) -> CleanResult:
    """One round as the node plays it: the job, a flush, the swap, a flush."""
    disk = log.storage
    assert isinstance(disk, SimulatedDisk)
    stable = log.last_stable_offset(log.log_end_offset) if stable is None else stable
    cleanable = clean_measure.measure(log, cleaned_to, stable, now_ms)
    request, _ = clean_measure.request_for(log, cleanable, now_ms=now_ms, max_keys=max_keys, io_bytes=io_bytes)
    result = clean_job.clean(disk, request)
    assert not result.damage
    made = [name for name in disk.list(log.directory) if name.endswith(names.CLEANED_SUFFIX)]
    files = [disk.open(f"{log.directory}/{name}") for name in made]
    assert disk.apply_flush(Flush(0, disk, files, (), [log.directory])) is None
    for one in result.cleaned:
        index = [segment.base_offset for segment in log.segments].index(one.first_source)
        for path in log.replace_by_cleaned(index, one):
            disk.delete(path)
    assert disk.apply_flush(Flush(0, disk, (), (), [log.directory])) is None
    return result


def records_in(log: Log, max_bytes: int = 1 << 30) -> list[Record]:
    """Every record a reader of everything gets."""
    return [
        record
        for header in batches_in(log, max_bytes=max_bytes)
        if not header.is_control
        for record in iterate_records(header)
        if record.offset >= log.log_start_offset
    ]


def last_values(records: Sequence[Record]) -> dict[bytes | None, bytes | None]:
    """What somebody who reads it all knows in the end: the last value of each key, without those deleted."""
    known: dict[bytes | None, bytes | None] = {}
    for record in records:
        known[record.key] = record.value
    return {key: value for key, value in known.items() if key is not None and value is not None}


def committed_records(log: Log) -> list[Record]:
    """What a read_committed reader sees, as clients work it out from the aborted transactions they are told."""
    aborted = sorted(log.aborted_transactions(log.log_start_offset, log.log_end_offset), key=lambda a: a.first_offset)
    active: set[int] = set()
    found: list[Record] = []
    for header in batches_in(log):
        while aborted and aborted[0].first_offset <= header.last_offset:
            active.add(aborted.pop(0).producer_id)
        if header.is_control:
            for record in iterate_records(header):
                if record.key is not None and record.key[3] == 0:
                    active.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in active):
            found += iterate_records(header)
    return found
