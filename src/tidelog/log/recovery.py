"""Opening a log: finish what was interrupted, find its end, and prove every batch that may be torn.

After a clean stop the files are taken at their word; only the newest segment's last batch is looked at.
After any other stop:

    the segment with the recovery point, and all after it   are read through, every checksum, and indexed anew
    at the first batch that is not whole                    the log is cut, as Kafka does: nothing after it was promised
    all before                                              must end with a whole batch

What was flushed is never given up silently: damage below the recovery point with records behind it is a
CorruptionError, and the files stay as they are. A caller that has another copy deletes the directory; one that would
rather keep what is before the damage opens it with a recovery point of 0.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tidelog.errors import CorruptionError
from tidelog.log import names, replay, scan
from tidelog.log.epochs import EpochHistory
from tidelog.log.flushing import FlushState
from tidelog.log.leftovers import tidy
from tidelog.log.log import Log
from tidelog.log.producer_state import ProducerState
from tidelog.log.segment import RELATIVE_OFFSET_MAX, Segment
from tidelog.log.segments import Segments
from tidelog.log.snapshot_files import SnapshotFiles
from tidelog.storage import Storage
from tidelog.wire.batch_header import LENGTH_END

if TYPE_CHECKING:
    from tidelog.config import TopicConfig


class Recovered:
    """What an unclean stop cost."""

    __slots__ = ("is_below_recovery_point", "log_end_offset", "removed_segments", "scanned_bytes", "truncated_bytes")

    def __init__(self) -> None:
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        """Cut from the end of the last good segment."""
        self.removed_segments = 0
        """Dropped whole, because what came before them was cut."""
        self.is_below_recovery_point = False
        """The cut was below what the checkpoint called flushed: it is out of date after a truncation, or the disk
        lost flushed bytes at the end of the log. Worth telling people."""
        self.log_end_offset = 0

    def __repr__(self) -> str:
        return f"Recovered({self.log_end_offset}, cut {self.truncated_bytes} bytes, {self.removed_segments} segments)"


def open_log(
    storage: Storage,
    directory: str,
    config: TopicConfig,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean: bool,
    is_whole: bool,
    now_ms: int,
    producer_expiry_ms: int,
) -> Log:
    """See `Log.open`."""
    storage.make_directory(directory)
    found = tidy(storage, directory)
    segments = Segments(
        Segment(
            storage,
            directory,
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            index_bytes=config.segment_index_bytes,
            size=storage.size(f"{directory}/{names.file_name(base_offset, names.LOG_SUFFIX)}"),
            created_ms=now_ms,
            has_txn_index=has_txn_index,
        )
        for base_offset, has_txn_index in found.segments
    )
    opening = _Opening(storage, directory, config, segments, found.snapshot_offsets, now_ms, producer_expiry_ms)
    return opening.open(recovery_point, log_start_offset, clean, is_whole)


class _Opening:
    """The parts of a log while it is opened."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        config: TopicConfig,
        segments: Segments,
        snapshot_offsets: list[int],
        now_ms: int,
        producer_expiry_ms: int,
    ) -> None:
        self.storage = storage
        self.directory = directory
        self.config = config
        self.segments = segments
        self.now_ms = now_ms
        self.snapshots = SnapshotFiles(storage, directory, snapshot_offsets)
        self.producers = ProducerState(producer_expiry_ms)
        self.is_new = not len(segments)
        self.flushes = FlushState(storage, directory, 0, is_new=self.is_new)
        self.epoch_path = f"{directory}/{names.EPOCH_CHECKPOINT}"

    def open(self, recovery_point: int, log_start_offset: int, clean: bool, is_whole: bool) -> Log:
        recovered: Recovered | None = None
        history: EpochHistory | None = None
        stored_epochs = b""
        end_offset = log_start_offset
        if len(self.segments):
            history = EpochHistory.read(self.storage, self.epoch_path)
            if history is None:
                history = self._rebuild_epochs()
            else:
                stored_epochs = history.to_bytes()
            clean_end = self._end_after_clean_stop() if clean else None
            if clean_end is None:
                recovered = self._recover(recovery_point, log_start_offset, history, is_whole)
                end_offset = recovered.log_end_offset
                self.flushes.recovery_point = min(recovery_point, end_offset)
            else:
                end_offset = self.flushes.recovery_point = clean_end
        else:
            self.flushes.recovery_point = log_start_offset
        if not len(self.segments) or end_offset < log_start_offset:
            end_offset = log_start_offset
            self._start_anew(log_start_offset)
            if not self.is_new:
                self.flushes.recovery_point = 0  # a power loss may bring back some of what was dropped
            history = EpochHistory()
            if stored_epochs:
                self._write_epochs(history)  # what it says of the log before must not be believed again
                stored_epochs = history.to_bytes()
        assert history is not None
        start_offset = max(log_start_offset, self.segments[0].base_offset)
        history.truncate_from_end(end_offset)
        history = self._with_forgotten_epochs(history, start_offset, end_offset)
        history.truncate_from_start(start_offset)
        is_epochs_stored = history.to_bytes() == stored_epochs
        if not is_epochs_stored and len(history):
            self._write_epochs(history)
            is_epochs_stored = True
        if recovered is None:
            self.snapshots.delete_above(end_offset)
            replay.load(self.segments, self.producers, self.snapshots, end_offset)
        replay.recall_batches(self.segments, self.producers)
        self.snapshots.delete_strays(self.segments.base_offsets)
        self.producers.remove_expired(self.now_ms)
        return Log(
            self.storage,
            self.directory,
            self.config,
            segments=self.segments,
            epoch_history=history,
            producers=self.producers,
            snapshots=self.snapshots,
            flushes=self.flushes,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            recovered=recovered,
            is_changed=recovered is not None or self.is_new,
            is_epochs_stored=is_epochs_stored,
        )

    def _end_after_clean_stop(self) -> int | None:
        """Where the log ends; None when the stop cannot have been clean after all.

        The last batch says so, which rot may have changed: its checksum is looked at.
        """
        active = self.segments.active
        try:
            end_offset = active.next_offset()
            last = active.locate(end_offset - 1)
            if last is not None:
                scan.read_batch(active.file, last[0], last[1].size)
        except CorruptionError:
            return None
        return end_offset

    def _start_anew(self, offset: int) -> None:
        """An empty log at an offset: a new one, or one whose records all lie before its start."""
        for segment in reversed(list(self.segments)):
            segment.discard()
        self.segments.clear()
        self.snapshots.delete_all()
        self.producers.start_from((), offset)
        self.segments.add(
            Segment.create(
                self.storage,
                self.directory,
                offset,
                index_interval_bytes=self.config.index_interval_bytes,
                index_bytes=self.config.segment_index_bytes,
                now_ms=self.now_ms,
            )
        )
        self.flushes.directory_changed()
        self.flushes.wrote_small_file(f"{self.directory}/{names.PARTITION_METADATA}")

    # --- epochs ---

    def _rebuild_epochs(self) -> EpochHistory:
        """Read the history from every batch there is: its checkpoint is gone, which only a power loss can do."""
        history = EpochHistory()
        with suppress(CorruptionError):  # recovery decides what this means
            self._read_epochs(history, None)
        return history

    def _read_epochs(self, history: EpochHistory, up_to_offset: int | None) -> None:
        """Add the epochs of all batches before an offset, as compaction keeps the head of each.

        That of the first may have gone with the segments before: its epoch is taken to begin with the first that is
        left. A replica that has records of an older epoch there is to fetch them anew: they may never have counted.
        """
        for segment in self.segments:
            if up_to_offset is not None and segment.base_offset >= up_to_offset:
                return
            for _, header in segment.headers_from(0, scan.WALK_BYTES):
                if up_to_offset is not None and header.base_offset >= up_to_offset:
                    return
                if header.partition_leader_epoch > history.latest:
                    is_first = not len(history)
                    begins_at = self.segments[0].base_offset if is_first else header.base_offset
                    history.assign(header.partition_leader_epoch, begins_at)

    def _with_forgotten_epochs(self, history: EpochHistory, start_offset: int, end_offset: int) -> EpochHistory:
        """The history of the whole log, which may begin before it: an unclean stop forgets that records were deleted,
        when where the log begins was not written down yet and the history without them was. It may begin before the
        log: of an epoch in force at its start perhaps only the head is left, somewhere before it.
        """
        known_from = history.entries[0][1] if len(history) else end_offset
        if known_from <= start_offset:
            return history
        whole = EpochHistory()
        try:
            self._read_epochs(whole, known_from)
        except CorruptionError:
            return history  # whoever reads there will find out
        for epoch, offset in history.entries:
            whole.assign(epoch, offset)
        return whole

    def _write_epochs(self, history: EpochHistory) -> None:
        self.storage.replace(self.epoch_path, history.to_bytes())
        self.flushes.wrote_small_file(self.epoch_path)

    # --- after an unclean stop ---

    def _recover(self, recovery_point: int, log_start_offset: int, history: EpochHistory, is_whole: bool) -> Recovered:
        recovered = Recovered()
        segments = self.segments
        while len(segments) > 1 and segments[1].base_offset <= log_start_offset:
            segments[0].discard()  # no reader would see it, and what it lost does not matter
            segments.remove_first(1)
        # The one that ends at the recovery point is looked at too: a cut made there may not have reached the medium.
        index = max(0, segments.index_for(recovery_point - 1))
        for before in range(index):
            self._check_complete(segments[before], segments[before + 1].base_offset)
        expected = segments[index].base_offset
        stored = history.copy()
        history.truncate_from_end(expected)
        self.snapshots.delete_above(expected)
        replay.load(segments, self.producers, self.snapshots, expected)
        while True:
            segment = segments[index]
            expected, valid_bytes = self._scan(segment, index, expected, recovery_point, history, stored)
            recovered.scanned_bytes += valid_bytes
            index += 1
            following = segments[index] if index < len(segments) else None
            is_read_whole = valid_bytes == segment.size
            goes_on = following is not None and self._may_follow(
                following, expected, is_read_whole, recovery_point, is_whole
            )
            # Where it is damage, nothing was changed but indexes, which can be made anew.
            if following is not None and not goes_on and max(expected, log_start_offset) < recovery_point:
                raise CorruptionError(
                    f"{segment.file.path} is damaged at {valid_bytes}, offset {expected}, which was flushed"
                )
            if is_whole and not goes_on and not _may_end(segment, valid_bytes, following):
                raise CorruptionError(
                    f"{segment.file.path} is damaged at {valid_bytes}, offset {expected}, which no stop has torn"
                )
            if valid_bytes < segment.size:
                recovered.truncated_bytes += segment.size - valid_bytes
                recovered.is_below_recovery_point = expected < recovery_point and not goes_on
                segment.file.truncate(valid_bytes)
                segment.size = valid_bytes
            if following is None or not goes_on:
                break
            segment.seal()
            self.flushes.sealed(segment)
            expected = self.producers.end_offset = following.base_offset
            self.snapshots.take(self.producers)
        while len(segments) > index:
            segments.active.discard()
            segments.remove_last()
            recovered.removed_segments += 1
        self.producers.end_offset = recovered.log_end_offset = expected
        self.flushes.directory_recovered()
        self.flushes.wrote_small_file(self.epoch_path)
        self.flushes.wrote_small_file(f"{self.directory}/{names.PARTITION_METADATA}")
        return recovered

    def _scan(
        self,
        segment: Segment,
        index: int,
        expected: int,
        recovery_point: int,
        history: EpochHistory,
        stored: EpochHistory,
    ) -> tuple[int, int]:
        """Prove a segment's batches and index them anew; the offset after the last good one, and where it ends.

        Epochs never go back within a log. Where they do, a power loss has brought back the end of an older one: it was
        cut, and the cut did not reach the medium, but what was appended since did.

        Where compaction has left a gap, only the stored history knows which epochs began within it, and where: taken
        from the batches that are left, an epoch would begin too late, and a replica that has records of the one before
        it there would be told to keep them.
        """
        last_possible = segment.base_offset + RELATIVE_OFFSET_MAX
        if index + 1 < len(self.segments):
            last_possible = min(last_possible, self.segments[index + 1].base_offset - 1)
        segment.reset_indexes()
        segment.txn_index.reset()
        valid_bytes = 0
        for position, header in scan.valid_batches(segment.file, expected, last_possible):
            epoch = header.partition_leader_epoch
            if 0 <= epoch < history.latest and header.base_offset >= recovery_point:
                break
            if epoch > history.latest:
                for known_epoch, start in stored.between(history.latest, epoch, expected, header.base_offset):
                    history.assign(known_epoch, start)
                if epoch > history.latest:
                    history.assign(epoch, header.base_offset if index or position else segment.base_offset)
            segment.note_batch(position, header.size, header.last_offset, header.newest_record_timestamp)
            segment.write_out_chunks()
            if header.producer_id >= 0:
                aborted = replay.note(header, self.producers, 0)
                if aborted is not None:
                    segment.txn_index.append(aborted)
            expected = header.next_offset
            valid_bytes = position + header.size
        return expected, valid_bytes

    def _may_follow(
        self, segment: Segment, expected: int, is_read_whole: bool, recovery_point: int, is_whole: bool
    ) -> bool:
        """Whether a segment goes on where the one before ends: all of its records are there.

        What is behind them then had been cut before. Only compaction leaves gaps, and they stay when the topic is no
        longer compacted; where records may be missing, any other gap is taken for those. Above the recovery point they
        may be of a compacted topic, too: a file can be empty, or end with a whole batch, while the next one is there.
        """
        return segment.base_offset == expected or (
            is_read_whole
            and segment.base_offset > expected
            and (is_whole or (self.config.is_compacted and segment.base_offset <= recovery_point))
        )

    @staticmethod
    def _check_complete(segment: Segment, next_base_offset: int) -> None:
        """A segment below the recovery point was flushed whole: its last batches must be there, up to the next one."""
        end_offset = segment.next_offset()
        if end_offset > next_base_offset:
            raise CorruptionError(
                f"{segment.file.path} ends at offset {end_offset}, the next segment begins at {next_base_offset}"
            )


def _may_end(segment: Segment, position: int, following: Segment | None) -> bool:
    """Whether a log from which nothing is missing may end here: there is no more, or a batch that is half written."""
    rest = segment.size - position
    if following is not None or rest <= LENGTH_END:
        return following is None
    length = int.from_bytes(segment.file.read(position, LENGTH_END)[8:], "big", signed=True)
    return LENGTH_END + length > rest
