"""Compaction of the replicas on this node: which log is next, and the way of its result into the log.

    measured -> work (off the loop) -> flushed -> swapped in -> flushed -> `cleaner-offset-checkpoint`
             \\ cut, rolled back, deleted or stopped meanwhile: what was made is thrown away, and it is measured again

One log at a time, the one with the largest dirty share first, as in Kafka. Leaders and followers clean on their own.
The checkpoint follows the swap onto the medium: what it calls clean must not be undone by a power loss, since a
tombstone that is taken for the last word on its key is forgotten one day.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.errors import CorruptionError, StorageError
from tidelog.log import clean_job, clean_measure, names
from tidelog.log.checkpoints import CLEANER_OFFSETS
from tidelog.log.clean_measure import Cleanable
from tidelog.log.clean_plan import KEY_BYTES, Cleaned, CleanResult
from tidelog.log.segment import Segment
from tidelog.replica.directory import LogDirectory
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas
from tidelog.storage import File

MIN_IO_BYTES = 4096
"""A buffer below that would only cost system calls."""


class _Cleaning:
    """One compaction under way."""

    def __init__(self, partition: Partition, sources: Sequence[Segment]) -> None:
        self.partition = partition
        self.log = partition.log
        self.sources = sources
        self.bytes_before = sum(one.size for one in sources)
        self.cut_count = partition.log.cut_count
        self.begun_ms = 0

    def is_still_true(self) -> bool:
        """Whether everything that was read is still there and in use."""
        return (
            self.partition.role is not Role.OFFLINE
            and self.partition.log is self.log
            and self.partition.config.is_compacted
            and self.log.cut_count == self.cut_count
            and list(self.log.segments[: len(self.sources)]) == list(self.sources)
        )


class Cleaner:
    """Compacts this node's logs, for as long as it runs."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._outbox = replicas.outbox
        self._underway: _Cleaning | None = None
        self._uncleanable: set[Partition] = set()
        """Those found damaged: a compaction would only copy what is left."""

    def start(self) -> None:
        """Begin to look for logs that are dirty enough."""
        if self._replicas.config.log_cleaner_enable:
            self._look_after(self._replicas.config.log_cleaner_backoff_ms)

    def is_cleaning(self, partition: Partition) -> bool:
        """Whether a compaction reads this one now: retention waits for it, as in Kafka."""
        return self._underway is not None and self._underway.partition is partition

    def _look_after(self, delay_ms: int) -> None:
        self._outbox.after(max(1, delay_ms), self._look)

    def _look(self) -> None:
        replicas, config = self._replicas, self._replicas.config
        if replicas.is_stopping:
            return
        found = self._filthiest() if config.log_cleaner_threads else None
        if found is None:
            self._look_after(config.log_cleaner_backoff_ms)
            return
        partition, cleanable = found
        try:
            request, sources = clean_measure.request_for(
                partition.log,
                cleanable,
                now_ms=self._outbox.now_ms,
                max_keys=int(
                    config.log_cleaner_dedupe_buffer_size * config.log_cleaner_io_buffer_load_factor / KEY_BYTES
                ),
                io_bytes=max(MIN_IO_BYTES, config.log_cleaner_io_buffer_size // 2),
            )
        except CorruptionError as error:
            self._damaged(partition, str(error))
            return
        except StorageError as error:
            replicas.storage_failed(partition.log.storage, error)
            self._look_after(config.log_cleaner_backoff_ms)
            return
        underway = self._underway = _Cleaning(partition, sources)
        underway.begun_ms = self._outbox.now_ms
        storage = replicas.directory_of(partition).storage

        def done(result: CleanResult | None, error: str | None) -> None:
            self._worked(underway, result, error)

        self._outbox.work(storage, clean_job.clean, (request,), done)

    def _filthiest(self) -> tuple[Partition, Cleanable] | None:
        """The log with the largest dirty share among those that may be compacted now."""
        best: tuple[Partition, Cleanable] | None = None
        for partition in self._replicas.partitions.values():
            if not partition.config.is_compacted or partition.role is Role.OFFLINE or partition in self._uncleanable:
                continue
            try:
                cleanable = clean_measure.measure(
                    partition.log, self._cleaned_to(partition), partition.last_stable_offset, self._outbox.now_ms
                )
            except StorageError as error:
                self._replicas.storage_failed(partition.log.storage, error)
                continue
            if not cleanable.dirty_bytes or not (
                cleanable.is_overdue or cleanable.dirty_ratio > partition.config.min_cleanable_dirty_ratio
            ):
                continue
            if best is None or cleanable.dirty_ratio > best[1].dirty_ratio:
                best = partition, cleanable
        return best

    def _cleaned_to(self, partition: Partition) -> int | None:
        directory = self._replicas.directory_of(partition)
        return directory.cleaner_offsets.get((partition.topic, partition.index))

    # --- the way of a result ---

    def _worked(self, underway: _Cleaning, result: CleanResult | None, error: str | None) -> None:
        if self._replicas.is_stopping:
            return  # what is left is tidied up at the next start
        if result is None or not underway.is_still_true():
            self._give_up(underway, error)
            return
        if result.damage:
            self._drop_files(underway)
            self._damaged(underway.partition, result.damage)
            return
        log = underway.log
        storage = self._replicas.directory_of(underway.partition).storage
        files: list[File] = []
        try:
            for one in result.cleaned:
                suffixes = [suffix for suffix in names.SEGMENT_SUFFIXES if suffix != names.TXN_INDEX_SUFFIX]
                if one.has_txn_index:
                    suffixes.append(names.TXN_INDEX_SUFFIX)
                for suffix in suffixes:
                    name = names.file_name(one.first_source, suffix) + names.CLEANED_SUFFIX
                    files.append(storage.open(f"{log.directory}/{name}"))
        except (StorageError, FileNotFoundError) as failure:
            self._give_up(underway, str(failure))
            return

        def flushed(error: str | None) -> None:
            for file in files:
                file.close()
            if error is not None:
                self._storage_failed(underway, StorageError(storage.root, log.directory, error))
            else:
                self._install(underway, result)

        self._outbox.flush(storage, flushed, files=files, directories=[log.directory] if files else ())

    def _install(self, underway: _Cleaning, result: CleanResult, done: int = 0) -> None:
        """Let the new segments take the place of the old ones, oldest first, one in each step."""
        if self._replicas.is_stopping:
            return
        if not underway.is_still_true():
            self._give_up(underway, None)
            return
        partition, log = underway.partition, underway.log
        if done < len(result.cleaned):
            try:
                self._swap(underway, result.cleaned[done])
            except StorageError as error:
                self._storage_failed(underway, error)
                return
            self._outbox.after(0, lambda: self._install(underway, result, done + 1))
            return
        storage = self._replicas.directory_of(partition).storage

        def flushed(error: str | None) -> None:
            if error is not None:
                self._storage_failed(underway, StorageError(storage.root, log.directory, error))
            elif not self._replicas.is_stopping:
                self._finish(underway, result)

        self._outbox.flush(storage, flushed, directories=[log.directory])

    def _swap(self, underway: _Cleaning, cleaned: Cleaned) -> None:
        sources = underway.sources
        index = next(number for number, one in enumerate(sources) if one.base_offset == cleaned.first_source)
        doomed = underway.log.replace_by_cleaned(index, cleaned)
        underway.sources = [
            *sources[:index],
            underway.log.segments[index],
            *sources[index + cleaned.source_count :],
        ]
        self._replicas.delete_later(underway.partition, doomed)

    def _finish(self, underway: _Cleaning, result: CleanResult) -> None:
        partition, log = underway.partition, underway.log
        # Cut since: what comes in the place of what was cut is not clean.
        if partition.role is not Role.OFFLINE and log.cut_count == underway.cut_count:
            directory = self._replicas.directory_of(partition)
            directory.cleaner_offsets[(partition.topic, partition.index)] = result.clean_to
            try:
                self.write_checkpoint(directory)
            except StorageError as error:
                self._storage_failed(underway, error)
                return
            self._outbox.tell(
                "log-cleaned",
                "warning" if result.unreadable_batches else "debug",
                topic=partition.topic,
                partition=partition.index,
                offset=result.clean_to,
                bytes_before=underway.bytes_before,
                bytes_after=sum(one.size for one in underway.sources),
                records_read=result.records_read,
                records_kept=result.records_kept,
                unreadable_batches=result.unreadable_batches,
            )
        self._underway = None
        limit = self._replicas.config.log_cleaner_io_max_bytes_per_second
        busy_until_ms = underway.begun_ms + 1_000 * (result.bytes_read + result.bytes_written) / max(1.0, limit)
        self._look_after(int(busy_until_ms) - self._outbox.now_ms)

    def write_checkpoint(self, directory: LogDirectory) -> None:
        """Write `cleaner-offset-checkpoint` for the replicas that are in a directory."""
        offsets = self._replicas.offsets_in(
            directory, CLEANER_OFFSETS, lambda one: directory.cleaner_offsets.get((one.topic, one.index))
        )
        directory.write_checkpoint(CLEANER_OFFSETS, offsets)

    # --- when it goes wrong ---

    def _give_up(self, underway: _Cleaning, error: str | None) -> None:
        """Throw away what was made; the log as it is now is measured again in a while."""
        self._drop_files(underway)
        if error is not None and underway.is_still_true():
            self._outbox.tell(
                "cleaning-failed",
                "warning",
                topic=underway.partition.topic,
                partition=underway.partition.index,
                reason=error,
            )
        self._underway = None
        self._look_after(self._replicas.config.log_cleaner_backoff_ms)

    def _damaged(self, partition: Partition, reason: str) -> None:
        """Leave a damaged log alone until it is opened again; its readers are told where they meet the damage."""
        self._uncleanable.add(partition)
        self._outbox.tell("log-uncleanable", "error", topic=partition.topic, partition=partition.index, reason=reason)
        self._replicas.on_damage(partition, reason)
        self._underway = None
        self._look_after(self._replicas.config.log_cleaner_backoff_ms)

    def _drop_files(self, underway: _Cleaning) -> None:
        if self._replicas.partitions.get((underway.partition.topic, underway.partition.index)) is None:
            return  # its directory goes as a whole
        storage = underway.log.storage
        try:
            for name in storage.list(underway.log.directory):
                if name.endswith(names.CLEANED_SUFFIX):
                    storage.delete(f"{underway.log.directory}/{name}")
        except (StorageError, FileNotFoundError) as error:
            if isinstance(error, StorageError) and underway.partition.role is not Role.OFFLINE:
                self._replicas.storage_failed(storage, error)

    def _storage_failed(self, underway: _Cleaning, error: StorageError) -> None:
        self._replicas.storage_failed(underway.log.storage, error)
        self._underway = None
        self._look_after(self._replicas.config.log_cleaner_backoff_ms)
