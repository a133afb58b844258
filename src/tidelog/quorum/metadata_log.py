"""`__cluster_metadata-0`: the log that the quorum replicates, with its snapshots and the voter sets it holds.

Invariants: what `flushed_offset` covers is on the medium; snapshots cover only committed records; when the log begins
after 0 there is a snapshot that ends at or after its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from tidelog.config import TopicConfig
from tidelog.errors import CorruptionError, KafkaError
from tidelog.log import partition_metadata
from tidelog.log.epochs import EpochHistory
from tidelog.log.log import Log
from tidelog.log.names import EPOCH_CHECKPOINT
from tidelog.outbox import Outbox
from tidelog.quorum.batches import controls_of, iterate
from tidelog.quorum.flushed_mark import FlushedMark
from tidelog.quorum.settings import QuorumSettings
from tidelog.quorum.snapshot import BOOTSTRAP, SnapshotId
from tidelog.quorum.snapshot_files import SnapshotFiles
from tidelog.quorum.voters import VoterHistory, VoterSet
from tidelog.storage import File, Storage
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
        highest_epoch: int | None,
        on_flushed: Callable[[], None],
        on_failed: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._storage = storage
        self._settings = settings
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._flush_scheduled = False
        self._flush_end_offset: int | None = None
        """Where the log ended when the flush under way began."""
        storage.make_directory(DIRECTORY)
        partition_metadata.write(storage, DIRECTORY, TOPIC_ID)
        noted_epochs = EpochHistory.read(storage, f"{DIRECTORY}/{EPOCH_CHECKPOINT}")
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
        self.snapshot_files = SnapshotFiles(outbox, storage, DIRECTORY, on_failed)
        self.mark = FlushedMark(outbox, storage, DIRECTORY, on_failed)
        self.history = VoterHistory(static_voters)
        self._cut_damage(noted_epochs, highest_epoch)
        self._recover_snapshots()
        self._load_history()
        self.lost_records = self.end_offset < self.mark.offset
        """The disk lost records that this replica once told others it had; until it has them again it must not vote."""

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
        if self._log.latest_epoch >= 0:
            return self._log.latest_epoch
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def snapshots(self) -> list[SnapshotId]:
        """All snapshots, oldest first."""
        return self.snapshot_files.ids

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self.snapshot_files.latest

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
        offset, epoch = self.end_offset, self.last_epoch
        batches = list(iterate(data))
        for batch in batches:
            if batch.base_offset != offset or batch.partition_leader_epoch < epoch:
                raise CorruptionError(f"{batch} cannot follow offset {offset} and epoch {epoch}")
            offset, epoch = batch.next_offset, batch.partition_leader_epoch
        self._log.append_as_follower(memoryview(data), self._outbox.now_ms)
        for batch in batches:
            self._note_controls(batch)
        self._log.roll_if_due(self._outbox.now_ms)
        self.schedule_flush()

    def truncate_to_epoch_end(self, end: EpochEnd, wanted: Callable[[], bool], then: Callable[[int], None]) -> None:
        """Cut what the leader does not have, given the end of the last epoch in common; continue with the new end.

        That takes a flush; if it is not `wanted` any more after that, nothing is cut.
        """
        offset = min(end.end_offset, self.end_offset)
        if end.epoch != 0:
            own = self.end_of_epoch(end.epoch)
            offset = min(own.end_offset, end.end_offset) if own.epoch == end.epoch else own.end_offset

        def cut() -> None:
            if not wanted():
                return
            try:
                end_offset = self._log.truncate_to(offset, self._outbox.now_ms)
                if end_offset < offset:
                    raise CorruptionError(f"{DIRECTORY}: no whole batch ends at {offset}, only at {end_offset}")
            except CorruptionError as error:
                self._on_failed(str(error))
                return
            self.history.truncate_to(end_offset)
            self.schedule_flush()
            then(end_offset)

        self.mark.lower_to(offset, cut)

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
        if not self.lost_records:
            self.mark.raise_to(self.flushed_offset)
        if self.flushed_offset < self.end_offset:
            self.schedule_flush()
        self._on_flushed()

    def has_all_again(self) -> None:
        """Everything that is committed is in this log and flushed, whatever the disk had lost."""
        self.lost_records = False
        self.mark.lower_to(self.flushed_offset, lambda: None)
        self.mark.raise_to(self.flushed_offset)

    def close(self) -> None:
        """Give the files back."""
        self._log.close()
        self.mark.close()

    # --- reading ---

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from the one that holds `offset` on, for a replica, their checksums checked; at least one if any."""
        if offset >= self.end_offset:
            return b""
        data = self._read(offset, max_bytes, self.end_offset)
        for _ in self._checked(data, offset):
            pass
        return data

    def batches(self, offset: int, end_offset: int) -> Iterator[BatchHeader]:
        """The batches from `offset` up to `end_offset`; CorruptionError when one is damaged."""
        while offset < end_offset:
            for batch in self._checked(self._read(offset, READ_BYTES, end_offset), offset):
                offset = batch.next_offset
                yield batch

    def _checked(self, data: bytes, offset: int) -> Iterator[BatchHeader]:
        """The batches in `data`, the first of which holds `offset`. A checksum covers neither offset nor epoch."""
        epochs = self._log.epoch_history
        for batch in iterate(data, DIRECTORY):
            if not batch.base_offset <= offset < batch.next_offset:
                raise CorruptionError(f"{DIRECTORY}: {batch} where offset {offset} should be")
            if batch.partition_leader_epoch != epochs.epoch_for_offset(offset):
                raise CorruptionError(f"{DIRECTORY}: {batch} is not of epoch {epochs.epoch_for_offset(offset)}")
            offset = batch.next_offset
            yield batch
        if not data:
            raise CorruptionError(f"{DIRECTORY}: no batch at offset {offset}")

    def _cut_damage(self, noted_epochs: EpochHistory | None, highest_epoch: int | None) -> None:
        """Cut the log where a batch does not follow the one before it, or has another epoch than was noted for it.

        Opening the log has proved the checksums; it takes offsets and epochs from the batches themselves.
        """
        offset = self.start_offset
        try:
            for batch in self.batches(offset, self.end_offset):
                epoch = batch.partition_leader_epoch
                # The note becomes durable with the batch, so it can be wrong only where nothing was promised.
                noted = noted_epochs.epoch_for_offset(offset) if noted_epochs is not None else -1
                if noted not in (-1, epoch) or (highest_epoch is not None and epoch > highest_epoch):
                    raise CorruptionError(f"{DIRECTORY}: {batch} cannot be of epoch {epoch}")
                offset = batch.next_offset
        except CorruptionError as error:
            self._outbox.tell("quorum-log-damaged", "error", cut_to=offset, reason=str(error))
            self._log.truncate_to(offset, self._outbox.now_ms)

    def _read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        try:
            return b"".join(part.read() for part in self._log.read(offset, max_bytes, up_to_offset=end_offset).parts)
        except KafkaError as error:
            raise CorruptionError(f"{DIRECTORY}: {error}") from None

    # --- snapshots ---

    def install(self, part: File, snapshot_id: SnapshotId, then: Callable[[], None]) -> None:
        """Add a snapshot that is written; the log may then be cut to begin with it."""

        def installed() -> None:
            if snapshot_id.end_offset < self.start_offset:  # meanwhile the log has begun anew from a later one
                self.snapshot_files.forget_before(next(one for one in self.snapshots if one[0] >= self.start_offset))
            then()

        install = partial(self.snapshot_files.install, part, snapshot_id, installed)
        if self._goes_further(snapshot_id):
            self.mark.lower_to(snapshot_id.end_offset, install)
        else:
            install()

    def begin_from_latest_snapshot(self) -> bool:
        """Throw the log away where the newest snapshot goes further; whether it did."""
        latest = self.latest_snapshot
        if latest is None or not self._goes_further(latest):
            return False
        self._log.truncate_fully_and_start_at(latest.end_offset, self._outbox.now_ms)
        self.snapshot_files.forget_before(latest)
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
        self.snapshot_files.forget_before(snapshot_id)

    def _over_size(self) -> bool:
        limit = self._settings.metadata_max_retention_bytes
        return 0 <= limit < self._log.size_bytes + self.snapshot_files.size_bytes

    def _over_age(self, snapshot_id: SnapshotId) -> bool:
        limit = self._settings.metadata_max_retention_ms
        try:
            return 0 <= limit < self._outbox.now_ms - self.snapshot_files.timestamp_ms(snapshot_id)
        except CorruptionError:
            return True

    def _goes_further(self, snapshot_id: SnapshotId) -> bool:
        """Whether the log cannot have what this stands for, which is committed: it ends before, or in an older epoch.

        A later epoch does not make up for the length: its records were never committed then (Raft's figure 8).
        """
        last_epoch = max(self._log.latest_epoch, 0)
        is_longer = snapshot_id.end_offset > self.end_offset or snapshot_id.epoch > last_epoch
        return snapshot_id != BOOTSTRAP and is_longer

    def _recover_snapshots(self) -> None:
        self.snapshot_files.recover(self.start_offset)
        latest = self.latest_snapshot
        if latest is not None and self._goes_further(latest):
            # A crash came between installing a snapshot and cutting the log.
            self._log.truncate_fully_and_start_at(latest.end_offset, self._outbox.now_ms)
            self.snapshot_files.forget_before(latest)
        elif latest is None and self.start_offset > 0:
            # The snapshot that the log begins with is damaged. What is left means nothing: begin as a new replica.
            self._outbox.tell("quorum-log-unusable", "error", log_start_offset=self.start_offset)
            self._log.truncate_fully_and_start_at(0, self._outbox.now_ms)

    # --- the voters it holds ---

    def _load_history(self) -> None:
        self.history.clear()
        offset = self.start_offset
        if self.latest_snapshot is not None:
            for control in self.snapshot_files.read(self.latest_snapshot).controls:
                self._note_control(self.latest_snapshot.end_offset - 1, control)
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
