"""`__cluster_metadata-0`: the log that the quorum replicates, with its snapshots and the voter sets it holds.

Invariants: what `flushed_offset` covers is on the medium; snapshots cover only committed records; when the log begins
after 0 there is a snapshot that ends at or after its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from tidelog.config import TopicConfig
from tidelog.errors import CorruptionError
from tidelog.log import partition_metadata
from tidelog.log.log import Log
from tidelog.outbox import Outbox
from tidelog.quorum import snapshot
from tidelog.quorum.batches import controls_of, iterate
from tidelog.quorum.settings import QuorumSettings
from tidelog.quorum.snapshot import BOOTSTRAP, SnapshotId
from tidelog.quorum.voters import VoterHistory, VoterSet
from tidelog.storage import File, Slice, Storage
from tidelog.wire.batch import BatchHeader
from tidelog.wire.message import Message
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.voters_record import VotersRecord
from tidelog.wire.uuids import ONE_UUID
from tidelog.wire.varints import Buffer

TOPIC = "__cluster_metadata"
TOPIC_ID = ONE_UUID
DIRECTORY = f"{TOPIC}-0"
READ_BYTES = 1 << 20


class EpochEnd(NamedTuple):
    """An epoch and the offset after its last record."""

    epoch: int
    end_offset: int


class MetadataLog:
    """The replicated log of one replica."""

    def __init__(
        self,
        outbox: Outbox,
        storage: Storage,
        settings: QuorumSettings,
        static_voters: VoterSet,
        on_flushed: Callable[[], None],
        on_failed: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._storage = storage
        self._settings = settings
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._parts = 0
        self._flush_scheduled = False
        self._flush_end_offset: int | None = None
        """Where the log ended when the flush under way began."""
        storage.make_directory(DIRECTORY)
        partition_metadata.write(storage, DIRECTORY, TOPIC_ID)
        self._log = Log.open(
            storage,
            DIRECTORY,
            TopicConfig(
                segment_bytes=settings.metadata_log_segment_bytes,
                segment_ms=settings.metadata_log_segment_ms,
                retention_bytes=-1,
                retention_ms=-1,
                max_message_bytes=(1 << 31) - 1,
            ),
            recovery_point=0,
            log_start_offset=0,
            clean=False,  # as Kafka: all of it is checked at every start
            now_ms=outbox.now_ms,
            producer_expiry_ms=(1 << 31) - 1,
        )
        self.snapshots: list[SnapshotId] = self._recover_snapshots()
        """Oldest first."""
        self.history = VoterHistory(static_voters)
        self._truncate_to_latest_snapshot()
        self._load_history()

    # --- where it begins and ends ---

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    @property
    def flushed_offset(self) -> int:
        """All below is on the medium. After a kill the tail may be in the page cache only, so a start flushes again."""
        return self._log.recovery_point

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or of the snapshot that the log begins with."""
        if self._log.epochs:
            return self._log.epochs[-1][0]
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch not after `epoch` and where it ends."""
        entries = self._log.epochs
        if not entries or epoch > entries[-1][0]:
            return EpochEnd(self.last_epoch, self.end_offset)
        if epoch < entries[0][0]:
            # Before all that the log still has. It begins with a snapshot, whose epoch is then the answer.
            if self.snapshots and self.snapshots[0].end_offset == entries[0][1]:
                return EpochEnd(self.snapshots[0].epoch, self.snapshots[0].end_offset)
            return EpochEnd(epoch, entries[0][1])
        for (found, _), (following, start_offset) in pairwise(entries):
            if found <= epoch < following:
                return EpochEnd(found, start_offset)
        return EpochEnd(entries[-1][0], self.end_offset)

    def epoch_before(self, end_offset: int) -> int:
        """The epoch of the record before `end_offset`."""
        found = next((epoch for epoch, start in reversed(self._log.epochs) if start < end_offset), None)
        if found is None:
            found = next((each.epoch for each in self.snapshots if each.end_offset == end_offset), 0)
        return found

    def validate(self, offset: int, epoch: int) -> EpochEnd | SnapshotId | None:
        """Whether a replica whose log ends at `offset` with `epoch` has a prefix of this log: None if so.

        Otherwise the snapshot it has to begin from, or the end of the last epoch it can have in common.
        """
        if offset == 0 and self.start_offset == 0:
            return None
        if self.snapshots:
            earliest = self.snapshots[0]
            if (
                offset < self.start_offset
                or (offset == self.start_offset and epoch != earliest.epoch)
                or epoch < earliest.epoch
            ):
                return self.snapshots[-1]
        end = self.end_of_epoch(epoch)
        return end if end.epoch != epoch or end.end_offset < offset else None

    # --- writing ---

    def append(self, data: Buffer) -> None:
        """Append batches that carry their offsets and epoch; count them only once they are flushed."""
        start = self.end_offset
        self._log.append_as_follower(memoryview(data), self._outbox.now_ms)
        for batch in iterate(data):
            if batch.base_offset >= start:
                self._note_controls(batch)
        self._log.roll_if_due(self._outbox.now_ms)
        self.schedule_flush()

    def truncate_to_epoch_end(self, end: EpochEnd) -> int:
        """Cut what the leader does not have, given the end of the last epoch in common; where the log now ends."""
        offset = min(end.end_offset, self.end_offset)
        if end.epoch != 0:
            own = self.end_of_epoch(end.epoch)
            offset = min(own.end_offset, end.end_offset) if own.epoch == end.epoch else own.end_offset
        end_offset = self._log.truncate_to(offset, self._outbox.now_ms)
        self.history.truncate_to(end_offset)
        self.schedule_flush()
        return end_offset

    def schedule_flush(self) -> None:
        """Flush at the end of this step whatever is not yet durable."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._outbox.at_end_of_step(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._flush_end_offset is not None or self.flushed_offset >= self.end_offset:
            return
        self._flush_end_offset = self.end_offset
        files, directories = self._log.files_to_flush()
        self._outbox.flush(self._storage, self._flush_done, files=files, directories=directories)

    def _flush_done(self, error: str | None) -> None:
        end_offset, self._flush_end_offset = self._flush_end_offset, None
        if error is not None:
            self._on_failed(f"the metadata log cannot be flushed: {error}")
            return
        assert end_offset is not None
        self._log.flushed_through(end_offset)
        if self.flushed_offset < self.end_offset:
            self.schedule_flush()
        self._on_flushed()

    def close(self) -> None:
        """Write what a start can use, and close the files."""
        self._log.take_producer_snapshot()
        self._log.close()

    # --- reading ---

    def slices(self, offset: int, max_bytes: int) -> list[Slice]:
        """Batches from the one that holds `offset` on, for a replica; at least one if there is any."""
        if offset >= self.end_offset:
            return []
        return self._log.read(offset, max_bytes, up_to_offset=self.end_offset).parts

    def batches(self, offset: int, end_offset: int) -> Iterator[BatchHeader]:
        """The batches from `offset` up to `end_offset`."""
        while offset < end_offset:
            parts = self._log.read(offset, READ_BYTES, up_to_offset=end_offset).parts
            data = b"".join(part.read() for part in parts)
            begun_at = offset
            for batch in iterate(data):
                if batch.last_offset < offset:
                    continue
                if batch.base_offset >= end_offset:
                    return
                offset = batch.last_offset + 1
                yield batch
            if offset == begun_at:
                raise CorruptionError(f"{DIRECTORY}: no batch at offset {offset}")

    # --- snapshots ---

    def open_snapshot(self, snapshot_id: SnapshotId) -> File | None:
        """The file of a snapshot, or None when there is no such snapshot."""
        if snapshot_id not in self.snapshots:
            return None
        return self._storage.open(f"{DIRECTORY}/{snapshot_id.file_name}")

    def read_snapshot(self, snapshot_id: SnapshotId) -> snapshot.Snapshot:
        """All of a snapshot, checked."""
        path = f"{DIRECTORY}/{snapshot_id.file_name}"
        return snapshot.read(self._storage.read_file(path), path)

    def create_part(self, snapshot_id: SnapshotId) -> File:
        """A new file to write a snapshot into; a start deletes it unless it was installed."""
        self._parts += 1
        stem, suffix = snapshot_id.file_name.split(".")
        return self._storage.open(f"{DIRECTORY}/{stem}-{self._parts}.{suffix}.part", create=True)

    def install(self, part: File, snapshot_id: SnapshotId, then: Callable[[], None]) -> None:
        """Make a written file durable under its name, then count it as a snapshot."""

        def named(error: str | None) -> None:
            if error is not None:
                self._on_failed(f"snapshot {snapshot_id} cannot be flushed: {error}")
            else:
                if snapshot_id not in self.snapshots:
                    self.snapshots = sorted([*self.snapshots, snapshot_id])
                then()

        def written(error: str | None) -> None:
            if error is not None:
                self._on_failed(f"snapshot {snapshot_id} cannot be flushed: {error}")
            else:
                self._storage.rename(part.path, f"{DIRECTORY}/{snapshot_id.file_name}")
                part.close()
                self._outbox.flush(self._storage, named, directories=[DIRECTORY])

        self._outbox.flush(self._storage, written, files=[part])

    def begin_from_latest_snapshot(self) -> bool:
        """Throw the log away where the newest snapshot goes further; whether it did."""
        if not self._truncate_to_latest_snapshot():
            return False
        self._load_history()
        return True

    def clean(self) -> None:
        """Delete the oldest snapshots, and the log below those that stay, by size and by age; the newest stays."""
        while len(self.snapshots) > 1 and (self._over_size() or self._over_age(self.snapshots[0])):
            self.raise_start_to(self.snapshots[1])

    def raise_start_to(self, snapshot_id: SnapshotId) -> None:
        """Let the log begin where this snapshot ends."""
        if snapshot_id not in self.snapshots or snapshot_id.end_offset > self.end_offset:
            return
        if snapshot_id.end_offset > self.start_offset:
            self._log.raise_log_start(snapshot_id.end_offset)
            for path in self._log.delete_old_segments(self._outbox.now_ms, snapshot_id.end_offset):
                self._storage.delete(path)
        self._forget_before(snapshot_id)

    def _over_size(self) -> bool:
        limit = self._settings.metadata_max_retention_bytes
        sizes = (self._storage.size(f"{DIRECTORY}/{each.file_name}") for each in self.snapshots)
        return limit >= 0 and self._log.size_bytes + sum(sizes) > limit

    def _over_age(self, snapshot_id: SnapshotId) -> bool:
        limit = self._settings.metadata_max_retention_ms
        if limit < 0:
            return False
        head = self._storage.open(f"{DIRECTORY}/{snapshot_id.file_name}").read(0, READ_BYTES)
        return self._outbox.now_ms - snapshot.read_timestamp_ms(head) > limit

    def _forget_before(self, snapshot_id: SnapshotId) -> None:
        for old in [each for each in self.snapshots if each < snapshot_id]:
            self._storage.delete(f"{DIRECTORY}/{old.file_name}")
            self.snapshots.remove(old)

    def _recover_snapshots(self) -> list[SnapshotId]:
        found = []
        for name in self._storage.list(DIRECTORY):
            snapshot_id = SnapshotId.of_file_name(name)
            if snapshot_id is not None and snapshot_id.end_offset >= self._log.log_start_offset:
                found.append(snapshot_id)
            elif snapshot_id is not None or snapshot.is_leftover(name):
                self._storage.delete(f"{DIRECTORY}/{name}")
        if self._log.log_start_offset > 0 and not found:
            raise CorruptionError(f"{DIRECTORY} begins at {self._log.log_start_offset} and no snapshot covers that")
        return sorted(found)

    def _truncate_to_latest_snapshot(self) -> bool:
        latest = self.latest_snapshot
        last_epoch = self._log.epochs[-1][0] if self._log.epochs else 0
        if latest is None or (latest.epoch, latest.end_offset) <= (last_epoch, self.end_offset) or latest == BOOTSTRAP:
            return False
        self._log.truncate_fully_and_start_at(latest.end_offset, self._outbox.now_ms)
        self._forget_before(latest)
        return True

    # --- the voters it holds ---

    def _load_history(self) -> None:
        self.history.clear()
        offset = self.start_offset
        if self.latest_snapshot is not None:
            loaded = self.read_snapshot(self.latest_snapshot)
            for control in loaded.controls:
                self._note_control(loaded_offset(self.latest_snapshot), control)
            offset = max(offset, self.latest_snapshot.end_offset)
        for batch in self.batches(offset, self.end_offset):
            self._note_controls(batch)

    def _note_controls(self, batch: BatchHeader) -> None:
        if batch.is_control:
            for offset, control in controls_of(batch):
                self._note_control(offset, control)

    def _note_control(self, offset: int, control: Message) -> None:
        if isinstance(control, VotersRecord):
            self.history.add_voters(offset, VoterSet.from_record(control))
        elif isinstance(control, KRaftVersionRecord):
            self.history.add_kraft_version(offset, control.kraft_version)


def loaded_offset(snapshot_id: SnapshotId) -> int:
    """Where what a snapshot holds stands in the log: its last record; -1 for the one that format wrote."""
    return snapshot_id.end_offset - 1
