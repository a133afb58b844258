"""The files of one partition's log: how segments roll, expire and are cut, and what is kept beside them.

`Log` adds what clients ask of it, appending and reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from tidelog.errors import ErrorCode, KafkaError
from tidelog.log import names, replay, retention
from tidelog.log.epochs import EpochHistory
from tidelog.log.flushing import FlushState
from tidelog.log.producer_state import ProducerState
from tidelog.log.reader import Reader
from tidelog.log.segment import RELATIVE_OFFSET_MAX, Segment
from tidelog.log.segments import Segments
from tidelog.log.snapshot_files import SnapshotFiles
from tidelog.log.validation import AppendRules
from tidelog.storage import File, Storage

if TYPE_CHECKING:
    from tidelog.config import TopicConfig
    from tidelog.log.clean_plan import Cleaned
    from tidelog.log.recovery import Recovered


class LogFiles:
    """What a log has on disk."""

    __slots__ = (
        "_config",
        "_flushes",
        "_is_changed",
        "_is_epochs_stored",
        "_is_plain",
        "_reader",
        "_roll_after_ms",
        "_rules",
        "_segments",
        "_snapshots",
        "cut_count",
        "directory",
        "epoch_history",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovered",
        "storage",
    )

    def __init__(
        self,
        storage: Storage,
        directory: str,
        config: TopicConfig,
        *,
        segments: Segments,
        epoch_history: EpochHistory,
        producers: ProducerState,
        snapshots: SnapshotFiles,
        flushes: FlushState,
        log_start_offset: int,
        log_end_offset: int,
        recovered: Recovered | None,
        is_changed: bool,
        is_epochs_stored: bool,
    ) -> None:
        self.storage = storage
        self.directory = directory
        self._segments = segments
        self.epoch_history = epoch_history
        self.producers = producers
        self._snapshots = snapshots
        self._flushes = flushes
        self.log_start_offset = log_start_offset
        """Records below it are gone for readers, whatever the files still hold."""
        self.log_end_offset = log_end_offset
        """The offset the next record gets. Invariant: log_start_offset <= log_end_offset."""
        self.recovered = recovered
        """What opening it after an unclean stop had to cut; None after a clean one."""
        self.cut_count = 0
        """How often records were cut from the end: what was read off the loop before may not be there any more."""
        self._reader = Reader(segments)
        self._is_changed = is_changed
        """Whether closing has anything to write."""
        self._is_epochs_stored = is_epochs_stored
        """Whether `leader-epoch-checkpoint` says what `epoch_history` says. An epoch without records is not worth a
        file: thousands of idle partitions are led anew at every start."""
        self.config = config

    # --- what it is ---

    @property
    def config(self) -> TopicConfig:
        """The topic's settings; setting it lets changed ones take effect."""
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._rules = AppendRules(config)
        self._is_plain = self._rules.codec is None and not self._rules.is_log_append_time
        self._appends_to(self._segments.active)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._segments.size_bytes

    @property
    def active_segment(self) -> Segment:
        """The one that is appended to."""
        return self._segments.active

    @property
    def segments(self) -> Sequence[Segment]:
        """All of them, oldest first."""
        return list(self._segments)

    @property
    def first_segment_offset(self) -> int:
        """Where the oldest segment begins."""
        return self._segments[0].base_offset

    @property
    def recovery_point(self) -> int:
        """All below it is flushed."""
        return self._flushes.recovery_point

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last batch, or one assigned since; -1 when there is none."""
        return self.epoch_history.latest

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each leader epoch with the offset it starts at, oldest first; not to be changed."""
        return self.epoch_history.entries

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and where it ends here; (-1, -1) when nothing is known of it (KIP-279)."""
        return self.epoch_history.end_offset_for(epoch, self.log_end_offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader's epoch begins at an offset; it is written down with its first record."""
        if self.epoch_history.assign(epoch, start_offset):
            self._is_epochs_stored = False

    # --- segments ---

    def _segment_for(self, size: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The active segment, or a new one when it may not take these batches."""
        segment = self._segments.active
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or (
            segment.size
            and (
                segment.size + size > self._rules.segment_bytes
                or segment.is_index_full
                or segment.waited_ms(max_timestamp, now_ms) > self._roll_after_ms
            )
        ):
            # Compaction may have left a gap wider than an index can span: begin behind it.
            is_wide = last_offset - self.log_end_offset > RELATIVE_OFFSET_MAX
            self._roll(now_ms, first_offset if is_wide else self.log_end_offset)
        return self._segments.active

    def roll_if_due(self, now_ms: int) -> bool:
        """Begin a new segment when this one has been written to for segment.ms by the clock; whether it did."""
        segment = self._segments.active
        if not segment.size or now_ms - segment.created_ms <= self._roll_after_ms:
            return False
        self._roll(now_ms, self.log_end_offset)
        return True

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless this one is empty."""
        if self._segments.active.size:
            self._roll(now_ms, self.log_end_offset)

    def _roll(self, now_ms: int, base_offset: int) -> None:
        sealed = self._segments.active
        sealed.seal()
        self._take_snapshot()
        self._flushes.directory_changed()
        segment = self._create_segment(base_offset, now_ms)
        self._segments.add(segment)
        self._appends_to(segment)
        self._flushes.sealed(sealed)
        self._reader.recent.clear()

    def _create_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment.create(
            self.storage,
            self.directory,
            base_offset,
            index_interval_bytes=self._config.index_interval_bytes,
            index_bytes=self._config.segment_index_bytes,
            now_ms=now_ms,
        )

    def _appends_to(self, segment: Segment) -> None:
        """Let the settings in force count for the active segment.

        It rolls earlier than segment.ms by a part of segment.jitter.ms that is its own: partitions made together must
        not all roll together. Where it is compacted it rolls in time for max.compaction.lag.ms (KIP-354).
        """
        config = self._config
        segment.index_interval_bytes = config.index_interval_bytes
        segment.index_bytes = config.segment_index_bytes
        segment.check_index_room()
        segment_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.is_compacted else config.segment_ms
        jitter_ms = min(config.segment_jitter_ms, segment_ms)
        if jitter_ms > 0:
            jitter_ms = crc32(f"{self.directory} {segment.base_offset}".encode()) % jitter_ms
        self._roll_after_ms = segment_ms - jitter_ms

    def delete_old_segments(self, now_ms: int, up_to_offset: int) -> list[str]:
        """Drop segments past retention, none that reaches beyond `up_to_offset`; the log starts where the rest does.

        Returns the renamed files, to be deleted when no reader can have them any more.
        """
        count = retention.count_expired(
            self._segments,
            self._config,
            now_ms=now_ms,
            log_start_offset=self.log_start_offset,
            up_to_offset=up_to_offset,
            log_end_offset=self.log_end_offset,
        )
        if not count:
            return []
        if count == len(self._segments):
            self._roll(now_ms, self.log_end_offset)
        doomed = [self._segments[index] for index in range(count)]
        self.raise_log_start(self._segments[count].base_offset)
        self._flushes.directory_changed()
        renamed: list[str] = []
        for segment in doomed:
            self._segments.remove_first(1)
            self._flushes.removed(segment)
            renamed += segment.mark_deleted()
        renamed += self._snapshots.mark_deleted(self._segments[0].base_offset)
        self._reader.forget_positions()
        return renamed

    def replace_by_cleaned(self, first: int, cleaned: Cleaned) -> list[str]:
        """Let a compaction's segment, which is on the medium, take the place of those it was made from.

        The names change in an order that a crash may stop anywhere (`tidelog.log.leftovers` goes on from there).
        Returns the files that are out of use, to be deleted when no reader can have them any more.
        """
        sources = [self._segments[index] for index in range(first, first + cleaned.source_count)]
        segment = Segment(
            self.storage,
            self.directory,
            cleaned.first_source,
            index_interval_bytes=self._config.index_interval_bytes,
            index_bytes=self._config.segment_index_bytes,
            size=cleaned.size,
            created_ms=sources[-1].created_ms,
            has_txn_index=cleaned.has_txn_index,
        )
        paths = [segment.path(suffix) for suffix in names.SEGMENT_SUFFIXES]
        if not cleaned.has_txn_index:
            paths.remove(segment.path(names.TXN_INDEX_SUFFIX))
        self._flushes.directory_changed()
        for path in paths:
            self.storage.rename(path + names.CLEANED_SUFFIX, path + names.SWAP_SUFFIX)
        renamed: list[str] = []
        for source in sources:
            self._flushes.removed(source)
            renamed += source.mark_deleted()
        for path in paths:
            self.storage.rename(path + names.SWAP_SUFFIX, path)
        self._segments.replace(first, cleaned.source_count, segment)
        self._reader.segments_replaced()
        return renamed + self._snapshots.mark_merged(source.base_offset for source in sources[1:])

    def raise_log_start(self, offset: int) -> None:
        """Let the log start at `offset` if it started before (DeleteRecords, retention, a leader's start)."""
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.directory} ends at {self.log_end_offset}, not at {offset}"
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._is_changed = True
            if self.epoch_history.truncate_from_start(offset):
                self._write_epochs()

    # --- cutting ---

    def truncate_to(self, offset: int, now_ms: int = 0) -> int:
        """Cut everything from `offset` on, with the whole batch that holds it; where the log now ends.

        Lowers the recovery point. Whoever keeps that on disk writes the lower one before anything is appended: a
        crash would otherwise take torn new records for damaged old ones.
        """
        if offset >= self.log_end_offset:
            # No record goes, but an epoch may have begun at the end without writing one: the next leader knows nothing
            # of it, and would answer forever that the logs part there.
            if self.epoch_history.truncate_from_end(self.log_end_offset):
                self._write_epochs()
            return self.log_end_offset
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return offset
        self._is_changed = True
        self._flushes.directory_changed()
        self._reader.forget_positions()
        while self._segments.active.base_offset > offset:
            doomed = self._segments.active
            self._flushes.removed(doomed)
            doomed.destroy()
            self._segments.remove_last()
            self.log_end_offset = doomed.base_offset
        active = self._segments.active
        self._flushes.removed(active)
        cut_at = active.truncate_to(offset, now_ms)
        self._appends_to(active)
        self._ends_at(offset if cut_at is None else min(offset, cut_at))
        self.epoch_history.truncate_from_end(self.log_end_offset)
        self._write_epochs()
        self._snapshots.delete_above(self.log_end_offset)
        replay.load(self._segments, self.producers, self._snapshots, self.log_end_offset, is_proof_wanted=True)
        replay.recall_batches(self._segments, self.producers)
        return self.log_end_offset

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """Drop everything and go on from `offset`: what a follower does whose leader has forgotten its end.

        The recovery point becomes 0 until the next flush: a power loss may bring back some of what was dropped.
        """
        self._is_changed = True
        self._flushes.directory_changed()
        self._reader.forget_positions()
        self._snapshots.delete_all()
        for segment in reversed(list(self._segments)):
            self._flushes.removed(segment)
            segment.destroy()
        self._segments.clear()
        self._segments.add(self._create_segment(offset, now_ms))
        self._appends_to(self._segments.active)
        self.log_start_offset = self.log_end_offset = offset
        self.cut_count += 1
        self._flushes.cut(0)
        self.epoch_history.clear()
        self._write_epochs()
        self.producers.start_from((), offset)

    def _ends_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.cut_count += 1
        self._flushes.cut(offset)

    # --- keeping ---

    @property
    def has_closed_segments_to_flush(self) -> bool:
        """Whether a segment was completed and no flush has made it durable yet."""
        return self._flushes.has_sealed_segments

    def files_to_flush(self) -> tuple[list[File], list[str]]:
        """Files and directories that, once flushed, make everything up to the present end durable.

        `flushed_through` with that end must follow when they are. All index entries are written out first.
        """
        unflushed: list[Segment] = []
        if self.recovery_point < self.log_end_offset:
            self._segments.active.write_out_indexes()
            unflushed = self._segments.starting_with(self.recovery_point)
        return self._flushes.begin(unflushed, self.log_end_offset)

    def end_when_cut_at(self, offset: int) -> int:
        """Where the log would end if it were cut at an offset, with the whole batch that holds it; 0 when all goes."""
        index = self._segments.index_for(offset)
        if index < 0:
            return 0
        found = self._segments[index].locate(offset)
        return offset if found is None else min(offset, found[1].base_offset)

    def lower_recovery_point(self, offset: int) -> None:
        """Call nothing from an offset on flushed any more: it is about to be cut."""
        self._flushes.cut(offset)

    def files_of_cut(self) -> tuple[list[File], list[str]]:
        """What must reach the medium so that no power loss brings back what was cut: where the log ends now, and which
        files there are.
        """
        return [self._segments.active.file], [self.directory]

    def flushed_through(self, offset: int) -> None:
        """What the last unanswered `files_to_flush` named is durable."""
        self._flushes.finish(offset)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were not heard of for the expiry time; how many."""
        return self.producers.remove_expired(now_ms)

    def close(self) -> None:
        """Complete the indexes, take a producer snapshot and give the files back.

        `files_to_flush` may still be called after it, to make a clean stop durable.
        """
        active = self._segments.active
        if self._is_changed:
            self._is_changed = False
            active.seal()
            if active.size or self.recovered is not None:  # what recovery cut must not come back
                self._flushes.sealed(active)
            else:
                self._flushes.directory_changed()
            self._take_snapshot()
        for segment in self._segments:
            segment.close()

    def _take_snapshot(self) -> None:
        path = self._snapshots.take(self.producers)
        if path is not None:
            self._flushes.wrote_small_file(path)

    def _write_epochs(self) -> None:
        path = f"{self.directory}/{names.EPOCH_CHECKPOINT}"
        self.storage.replace(path, self.epoch_history.to_bytes())
        self._flushes.wrote_small_file(path)
        self._is_epochs_stored = True
