"""One partition's log: appending to it and reading from it.

A step of the node calls in here directly; nothing waits. What must reach the medium goes out through `files_to_flush`
and comes back through `flushed_through`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import CorruptionError, ErrorCode, KafkaError, StorageError
from tidelog.log import replay, scan, validation
from tidelog.log.epochs import EpochHistory
from tidelog.log.log_files import LogFiles
from tidelog.log.producer_state import KnownBatch
from tidelog.log.reader import FoundByTime
from tidelog.log.results import Appended, LogRead, UnexpectedOffset
from tidelog.log.segment import RELATIVE_OFFSET_MAX
from tidelog.log.txn_index import AbortedTransaction
from tidelog.storage import Storage
from tidelog.wire.batch import BatchHeader, stamp, stamp_log_append_time

if TYPE_CHECKING:
    from tidelog.config import TopicConfig

_NO_TIMESTAMP = -1


class Log(LogFiles):
    """A partition's log. `Log.open` makes one."""

    __slots__ = ()

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        config: TopicConfig,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        is_whole: bool = False,
        now_ms: int,
        producer_expiry_ms: int,
    ) -> Log:
        """Open the log in a directory, or begin one there; `tidelog.log.recovery` says what an unclean stop costs.

        `is_whole` where nothing that was ever appended can be missing: what is then is damage, a CorruptionError.
        """
        from tidelog.log.recovery import open_log

        return open_log(
            storage,
            directory,
            config,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
            is_whole=is_whole,
            now_ms=now_ms,
            producer_expiry_ms=producer_expiry_ms,
        )

    def __repr__(self) -> str:
        return f"Log({self.directory}, {self.log_start_offset}..{self.log_end_offset})"

    # --- appending ---

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        is_internal: bool = False,
        transaction_version: int = 0,
    ) -> Appended:
        """Give a producer's batch its offsets and append it. `data` must be writable: offset and epoch go into it.

        `is_internal` is for batches this node made itself: several at once, markers, no sequence; a marker of a
        transaction names the version of the transaction protocol (KIP-890). Raises KafkaError when they are refused
        and StorageError when the disk fails; either way nothing was appended.
        """
        rules = self._rules
        if is_internal:
            headers = validation.check_internal(data, rules)
        else:
            headers = [validation.check_as_leader(data, rules, now_ms)]
        for header in headers:
            if header.producer_id >= 0:
                known = self._check_producer(header, is_internal, transaction_version)
                if known is not None:
                    return self._duplicate(known)
        if not self._is_plain:
            if is_internal:
                if rules.is_log_append_time:
                    for header in headers:
                        stamp_log_append_time(header, now_ms)
            else:
                data, headers[0] = validation.rewrite(data, headers[0], rules, now_ms)
        offset = first_offset = self.log_end_offset
        for header in headers:
            stamp(header, offset, leader_epoch)
            offset = header.base_offset + header.last_offset_delta + 1
        max_timestamp = self._append(data, headers, now_ms)
        append_time_ms = now_ms if rules.is_log_append_time else _NO_TIMESTAMP
        return Appended(first_offset, offset - 1, append_time_ms, max_timestamp, len(data))

    def append_as_follower(self, data: memoryview, now_ms: int = 0) -> Appended:
        """Append a leader's batches as they are. A batch cut short at the end is left for the next fetch.

        Raises UnexpectedOffset when they begin before the end of the log, KafkaError when one is damaged.
        """
        headers = validation.check_as_follower(data)
        if not headers:
            return Appended(self.log_end_offset, self.log_end_offset - 1, _NO_TIMESTAMP, _NO_TIMESTAMP, 0)
        if headers[0].base_offset < self.log_end_offset:
            raise UnexpectedOffset(self.directory, headers[0].base_offset, self.log_end_offset)
        last = headers[-1]
        size = last.position + last.size - headers[0].position
        max_timestamp = self._append(data[:size], headers, now_ms)
        return Appended(headers[0].base_offset, last.last_offset, _NO_TIMESTAMP, max_timestamp, size)

    def _check_producer(self, header: BatchHeader, is_internal: bool, transaction_version: int) -> KnownBatch | None:
        if header.is_control:
            marker = replay.read_marker(header)
            if marker is not None:
                epoch = header.producer_epoch
                self.producers.check_marker(header.producer_id, epoch, marker.coordinator_epoch, transaction_version)
            return None
        return self.producers.check_batch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_sequence,
            is_transactional=header.is_transactional,
            is_internal=is_internal,
        )

    def _duplicate(self, known: KnownBatch) -> Appended:
        append_time_ms = known.timestamp if self._rules.is_log_append_time else _NO_TIMESTAMP
        return Appended(known.first_offset, known.last_offset, append_time_ms, known.timestamp, 0, duplicate=True)

    def _append(self, data: memoryview, headers: list[BatchHeader], now_ms: int) -> int:
        """Write stamped batches, in one write for each segment they go to; their newest timestamp.

        Each batch is noted right after its bytes are in the file, so after a failure what is known is what is there.
        """
        max_timestamp = _NO_TIMESTAMP
        start = 0
        while start < len(headers):
            first = headers[start]
            end, size, newest = start, 0, _NO_TIMESTAMP
            while end < len(headers):
                header = headers[end]
                if size and (
                    size + header.length + 12 > self._rules.segment_bytes
                    or header.last_offset - first.base_offset > RELATIVE_OFFSET_MAX
                    or header.partition_leader_epoch != first.partition_leader_epoch
                ):
                    break
                size += header.length + 12
                newest = max(newest, header.max_timestamp)
                end += 1
            last_offset = headers[end - 1].base_offset + headers[end - 1].last_offset_delta
            segment = self._segment_for(size, first.base_offset, last_offset, newest, now_ms)
            # The head of an epoch is kept by compaction, but a log that begins later than its leader's may lack it.
            is_first = self.log_end_offset == self.log_start_offset
            begins_at = self.log_end_offset if is_first else first.base_offset
            epochs_before = self._begin_epoch(first.partition_leader_epoch, begins_at)
            position = segment.size
            try:
                segment.append(data if size == len(data) else data[first.position : first.position + size])
            except StorageError:
                if epochs_before is not None:
                    self.epoch_history = epochs_before
                    self._is_epochs_stored = False
                raise
            self._is_changed = True
            aborted: list[AbortedTransaction] = []
            for header in headers[start:end]:
                last_offset = header.base_offset + header.last_offset_delta
                segment.note_batch(position, header.length + 12, last_offset, header.newest_record_timestamp)
                self._reader.recent.note(header.base_offset, last_offset, position)
                self.log_end_offset = self.producers.end_offset = last_offset + 1
                if header.producer_id >= 0:
                    transaction = replay.note(header, self.producers, now_ms)
                    if transaction is not None:
                        aborted.append(transaction)
                position += header.length + 12
            for transaction in aborted:
                segment.txn_index.append(transaction)
            segment.write_out_chunks()
            max_timestamp = max(max_timestamp, newest)
            start = end
        return max_timestamp

    def _begin_epoch(self, epoch: int, start_offset: int) -> EpochHistory | None:
        """Note an epoch before its first batch is written; the history before, when that changed it."""
        if epoch < 0 or (epoch == self.epoch_history.latest and self._is_epochs_stored):
            return None
        before = self.epoch_history.copy()
        if not self.epoch_history.assign(epoch, start_offset) and self._is_epochs_stored:
            return None
        try:
            self._write_epochs()
        except StorageError:
            self.epoch_history = before
            raise
        return before

    # --- reading ---

    def read(self, offset: int, max_bytes: int, *, up_to_offset: int, at_least_one: bool = True) -> LogRead:
        """Whole batches from the one that holds `offset` on, all below `up_to_offset`, within `max_bytes`.

        With `at_least_one` the first batch comes even if it is larger than that. OFFSET_OUT_OF_RANGE outside the log.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within [{self.log_start_offset}, {self.log_end_offset}]",
            )
        limit = min(up_to_offset, self.log_end_offset)
        if offset >= limit:
            return LogRead([], offset, offset, 0)
        try:
            return self._reader.read(offset, max_bytes, limit, self.log_end_offset, at_least_one)
        except CorruptionError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None

    def find_damage(self, offset: int, max_bytes: int) -> str | None:
        """Where a batch from an offset on fails its checksum, within so many bytes; None when all are whole."""
        try:
            found = self._reader.read(offset, max_bytes, self.log_end_offset, self.log_end_offset, True)
            for part in found.parts:
                end = part.position + part.length
                for position, header in scan.headers(part.file, part.position, end, scan.VERIFY_BYTES):
                    scan.read_batch(part.file, position, header.size)
        except CorruptionError as error:
            return str(error)
        return None

    def bytes_between(self, first_offset: int, end_offset: int) -> int:
        """About how many bytes of batches lie between two offsets; exact near the end of the log."""
        try:
            return self._reader.bytes_between(first_offset, end_offset, self.log_end_offset)
        except (CorruptionError, StorageError):
            return self.size_bytes  # a reader will find out

    def offset_for_timestamp(self, timestamp: int, up_to_offset: int) -> FoundByTime | None:
        """The first record with this timestamp or a later one, its time and its epoch; None when there is none."""
        try:
            return self._reader.find_time(timestamp, self.log_start_offset, min(up_to_offset, self.log_end_offset))
        except CorruptionError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None

    def max_timestamp_offset(self, up_to_offset: int | None = None) -> FoundByTime | None:
        """The first record with the newest timestamp (KIP-734); None when no record has one."""
        limit = self.log_end_offset if up_to_offset is None else min(up_to_offset, self.log_end_offset)
        try:
            return self._reader.newest_record(self.log_start_offset, limit)
        except CorruptionError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None

    # --- transactions ---

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where every transaction is decided, for readers of committed records."""
        first_unstable = self.producers.first_unstable_offset(high_watermark)
        if first_unstable is None:
            return high_watermark
        return min(high_watermark, max(first_unstable, self.log_start_offset))

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between two offsets."""
        try:
            return self._reader.aborted_transactions(first_offset, end_offset)
        except CorruptionError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
