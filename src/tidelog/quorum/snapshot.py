"""Snapshot files `NNNNNNNNNNNNNNNNNNNN-EEEEEEEEEE.checkpoint`: what the log said up to an offset, in fewer records.

A file of record batches: a control batch with a SnapshotHeaderRecord and, with kraft.version 1, the KRaftVersionRecord
and the VotersRecord in force at its end; batches of framed metadata records; a control batch with a
SnapshotFooterRecord. A file without a footer is not a snapshot. `bootstrap.checkpoint` has the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.errors import CorruptionError
from tidelog.quorum.batches import (
    RecordAndVersion,
    build_control_batch,
    build_data_batch,
    controls_of,
    frame,
    iterate,
    records_of,
)
from tidelog.quorum.voters import VoterSet
from tidelog.wire.batch import iterate_batches
from tidelog.wire.message import Message
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.snapshot_footer_record import SnapshotFooterRecord
from tidelog.wire.records.snapshot_header_record import SnapshotHeaderRecord

BATCH_BYTES = 256 * 1024
"""Size at which a batch of a snapshot is closed: small enough to read one at a time."""
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEFTOVER = re.compile(r"\d{20}-\d{10}.*\.checkpoint\.(part|deleted)")


class SnapshotId(NamedTuple):
    """Where a snapshot ends: it stands for all records before `end_offset`, the last of which is of `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Kafka's name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"

    @staticmethod
    def of_file_name(name: str) -> SnapshotId | None:
        """The snapshot in a file of this name; None when it is no such name."""
        match = _NAME.fullmatch(name)
        return None if match is None else SnapshotId(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.end_offset}-{self.epoch}"


BOOTSTRAP = SnapshotId(0, 0)
"""The snapshot that format writes; it holds the first voters and is never sent to another replica."""


class Snapshot(NamedTuple):
    """What a snapshot file holds."""

    timestamp_ms: int
    """When the last record that it covers was appended."""
    controls: list[Message]
    """The KRaftVersionRecord and the VotersRecord, if it has them."""
    records: list[Message]


def is_leftover(name: str) -> bool:
    """Whether a file of this name is a snapshot half written or half deleted."""
    return _LEFTOVER.fullmatch(name) is not None


def chunks(
    records: Iterable[RecordAndVersion],
    *,
    epoch: int,
    now_ms: int,
    last_timestamp_ms: int = 0,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[bytes]:
    """The bytes of a snapshot file, a batch at a time."""
    controls: list[Message] = [SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms)]
    if kraft_version > 0:
        controls.append(KRaftVersionRecord(version=0, kraft_version=kraft_version))
        if voters is not None:
            controls.append(voters.to_record())
    yield build_control_batch(controls, base_offset=0, epoch=epoch, timestamp_ms=now_ms)
    offset = len(controls)
    values: list[bytes] = []
    size = 0
    for record, version in records:
        value = frame(record, version)
        if values and size + len(value) > batch_bytes:
            yield build_data_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
            offset += len(values)
            values, size = [], 0
        values.append(value)
        size += len(value)
    if values:
        yield build_data_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
        offset += len(values)
    footer = SnapshotFooterRecord(version=0)
    yield build_control_batch([footer], base_offset=offset, epoch=epoch, timestamp_ms=now_ms)


def write(
    records: Iterable[RecordAndVersion],
    *,
    epoch: int = 0,
    now_ms: int,
    last_timestamp_ms: int = 0,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
) -> bytes:
    """A whole snapshot file; also `bootstrap.checkpoint`."""
    return b"".join(
        chunks(
            records,
            epoch=epoch,
            now_ms=now_ms,
            last_timestamp_ms=last_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
    )


def read_timestamp_ms(head: bytes) -> int:
    """When the last record that a snapshot covers was appended, from the beginning of its file."""
    for batch in iterate_batches(head, allow_partial=True):
        for _, control in controls_of(batch):
            if isinstance(control, SnapshotHeaderRecord):
                return control.last_contained_log_timestamp
    raise CorruptionError("a snapshot without header")


def read(data: bytes, name: str = "snapshot") -> Snapshot:
    """All of a snapshot file; CorruptionError unless every batch is sound and header and footer are there."""
    timestamp_ms: int | None = None
    controls: list[Message] = []
    records: list[Message] = []
    complete = False
    for batch in iterate(data, name):
        if complete:
            raise CorruptionError(f"{name}: batches follow the footer")
        if not batch.is_control:
            records.extend(records_of(batch))
            continue
        for _, control in controls_of(batch):
            if isinstance(control, SnapshotHeaderRecord):
                timestamp_ms = control.last_contained_log_timestamp
            elif isinstance(control, SnapshotFooterRecord):
                complete = True
            else:
                controls.append(control)
    if timestamp_ms is None or not complete:
        raise CorruptionError(f"{name}: a snapshot without {'header' if timestamp_ms is None else 'footer'}")
    return Snapshot(timestamp_ms, controls, records)
