"""Writing a snapshot of what the listener was told, a few records a step, and letting the log begin after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tidelog.errors import StorageError
from tidelog.quorum import snapshot
from tidelog.quorum.batches import RecordAndVersion
from tidelog.quorum.core import Core
from tidelog.quorum.settings import CLEANING_INTERVAL_MS
from tidelog.quorum.snapshot import SnapshotId
from tidelog.storage import File

STEP_BYTES = 64 * 1024
"""A step writes about this much, so that a large snapshot holds nothing up."""

Done = Callable[[SnapshotId | None], None]


class Snapshots:
    """One snapshot at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._writing: SnapshotId | None = None

    def start(self) -> None:
        """Clean up now and then."""
        self._core.outbox.after(CLEANING_INTERVAL_MS, self._clean)

    def write(
        self, records: Iterable[RecordAndVersion], end_offset: int, last_timestamp_ms: int | None, then: Done | None
    ) -> SnapshotId | None:
        """Begin to write; the snapshot's id, or None when there is nothing to do."""
        core = self._core
        if end_offset > (core.commits.told_offset or 0):
            raise ValueError(f"a snapshot up to {end_offset} would hold what is not committed")
        snapshot_id = SnapshotId(end_offset, core.log.epoch_before(end_offset))
        latest = core.log.latest_snapshot
        if self._writing is not None or end_offset <= core.log.start_offset or (latest and latest[0] >= end_offset):
            return None
        self._writing = snapshot_id
        history = core.log.history
        chunks = snapshot.chunks(
            records,
            epoch=snapshot_id.epoch,
            now_ms=core.outbox.now_ms,
            last_timestamp_ms=core.commits.last_timestamp_ms if last_timestamp_ms is None else last_timestamp_ms,
            kraft_version=history.kraft_version_at(end_offset - 1),
            voters=history.voters_at(end_offset - 1),
            batch_bytes=STEP_BYTES,
        )
        self._write_some(chunks, core.log.snapshot_files.create_part(snapshot_id), snapshot_id, then)
        return snapshot_id

    def _write_some(self, chunks: Iterator[bytes], part: File, snapshot_id: SnapshotId, then: Done | None) -> None:
        core = self._core
        if core.failed:
            return
        try:
            chunk = next(chunks, None)
            if chunk is not None:
                part.append(chunk)
        except StorageError as error:
            core.fail(f"snapshot {snapshot_id} cannot be written: {error}")
            return
        if chunk is not None:
            core.outbox.after(0, lambda: self._write_some(chunks, part, snapshot_id, then))
        else:
            core.log.install(part, snapshot_id, lambda: self._written(snapshot_id, then))

    def _written(self, snapshot_id: SnapshotId, then: Done | None) -> None:
        self._writing = None
        self._core.outbox.tell("quorum-snapshot", snapshot=str(snapshot_id))
        self._core.log.clean()
        if then is not None:
            then(snapshot_id)

    def _clean(self) -> None:
        if not self._core.failed:
            self._core.log.clean()
            self.start()
