"""What is committed, as far as this replica knows, and telling the listener about it in order."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.errors import CorruptionError
from tidelog.quorum.batches import committed_batch
from tidelog.quorum.listener import Listener, LoadedSnapshot
from tidelog.quorum.metadata_log import MetadataLog
from tidelog.quorum.snapshot import SnapshotId


class Commits:
    """The committed part of the log and how much of it the listener was told."""

    def __init__(self, log: MetadataLog, listener: Listener, on_failed: Callable[[str], None]) -> None:
        self._log = log
        self._listener = listener
        self._on_failed = on_failed
        self.high_watermark = log.latest_snapshot.end_offset if log.latest_snapshot else log.start_offset
        """All below is committed; never goes down. Snapshots hold committed records only, so they count at once."""
        self.told_offset: int | None = None
        """The next offset the listener is to be told; None before the first."""
        self.last_timestamp_ms = 0
        """When the last record that the listener was told about was appended."""
        self._telling = False

    def advance(self, high_watermark: int) -> bool:
        """Everything below is committed; tell the listener. Whether that is news."""
        news = high_watermark > self.high_watermark
        if news:
            self.high_watermark = high_watermark
        self.tell()
        return news

    def tell(self) -> None:
        """Tell the listener all it has not been told, from a snapshot where the log no longer has it."""
        if self._telling:  # the listener appended, and a quorum of one committed it: the outer call goes on with it
            return
        self._telling = True
        try:
            latest = self._log.latest_snapshot
            if self.told_offset is None or self.told_offset < self._log.start_offset:
                if latest is not None:
                    self._load(latest)
                else:
                    self.told_offset = self._log.start_offset
            assert self.told_offset is not None
            for batch in self._log.batches(self.told_offset, self.high_watermark):
                self.told_offset = batch.last_offset + 1
                committed = committed_batch(batch)
                self.last_timestamp_ms = committed.timestamp_ms
                self._listener.on_committed(committed)
        except CorruptionError as error:
            # The next start cuts the damage out and copies what is missing from the others.
            self._on_failed(str(error))
        finally:
            self._telling = False

    def _load(self, snapshot_id: SnapshotId) -> None:
        loaded = self._log.snapshot_files.read(snapshot_id)
        self.told_offset = snapshot_id.end_offset
        self.last_timestamp_ms = loaded.timestamp_ms
        self._listener.on_snapshot_loaded(
            LoadedSnapshot(snapshot_id.end_offset, snapshot_id.epoch, loaded.timestamp_ms, loaded.records)
        )
