"""Reading a log: by offset, and by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.errors import KafkaError
from tidelog.log import scan
from tidelog.log.positions import Bookmarks, RecentBatches
from tidelog.log.results import LogRead
from tidelog.log.segment import Segment
from tidelog.log.segments import Segments
from tidelog.log.txn_index import AbortedTransaction
from tidelog.storage import Slice
from tidelog.wire.batch import BatchHeader, iterate_records


class FoundByTime(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


class Reader:
    """Finds batches in the segments of one log. It is told of every append and of every cut."""

    __slots__ = ("_bookmarks", "_segments", "recent")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._bookmarks = Bookmarks()
        self.recent = RecentBatches()
        """Of the active segment."""

    def forget_positions(self) -> None:
        """The log was cut, or segments were deleted."""
        self.recent.clear()
        self._bookmarks.clear()

    def segments_replaced(self) -> None:
        """Compaction put other segments where readers were; the end of the log is as it was."""
        self._bookmarks.clear()

    # --- by offset ---

    def read(self, offset: int, max_bytes: int, limit: int, end_offset: int, at_least_one: bool) -> LogRead:
        """Whole batches from the one that holds `offset`, all below `limit`; `end_offset` is the log's end."""
        segments = self._segments
        index, segment, position, first_offset = self._place(offset)
        parts: list[Slice] = []
        size = 0
        next_offset = offset
        while True:
            is_last = segment is segments.active
            following = end_offset if is_last else segments[index + 1].base_offset
            if following <= limit:
                end, end_at = segment.size, following
            else:
                end, end_at = self._locate_in(segment, limit, is_last) or (segment.size, limit)
            wanted = max_bytes - size
            if end - position > wanted:
                cut = self._cut(segment, position, position + wanted, is_last)
                if cut is not None:
                    end, end_at = cut
                elif at_least_one and not parts:
                    end, end_at = self._first_batch(segment, position, end, end_at)
                else:
                    break
                is_last = True  # no room for more
            if end > position:
                parts.append(Slice(segment.file, position, end - position))
                size += end - position
                next_offset = min(end_at, limit)
            if end < segment.size:
                if end > position:
                    self._bookmarks.put(end_at, segment, end)
                break
            if is_last or following >= limit:
                break
            index += 1
            segment, position = segments[index], 0
        return LogRead(parts, first_offset, next_offset, size)

    def _place(self, offset: int) -> tuple[int, Segment, int, int]:
        """Index of the segment, segment, position and base offset of the first batch that reaches `offset`."""
        segments = self._segments
        found = self.recent.locate(offset)
        if found is not None:
            return len(segments) - 1, segments.active, found[0], found[1]
        index = segments.index_for(offset)
        place = self._bookmarks.get(offset)
        if place is not None:
            return index, place[0], place[1], offset
        while True:
            segment = segments[index]
            located = segment.locate(offset)
            if located is not None:
                return index, segment, located[0], located[1].base_offset
            if segment is segments.active:
                return index, segment, segment.size, offset
            index += 1  # compaction left a gap up to the next segment

    def _locate_in(self, segment: Segment, offset: int, is_active: bool) -> tuple[int, int] | None:
        """Position and base offset of the first batch of a segment that reaches `offset`."""
        if is_active:
            found = self.recent.locate(offset)
            if found is not None:
                return found
        place = self._bookmarks.get(offset)
        if place is not None and place[0] is segment:
            return place[1], offset
        located = segment.locate(offset)
        if located is None:
            return None
        self._bookmarks.put(located[1].base_offset, segment, located[0])
        return located[0], located[1].base_offset

    def _cut(self, segment: Segment, start: int, limit: int, is_active: bool) -> tuple[int, int] | None:
        found = self.recent.cut_before(start, limit) if is_active else None
        if found is None:
            found = segment.cut_before(start, limit)
        return found if found is not None and found[0] > start else None

    @staticmethod
    def _first_batch(segment: Segment, position: int, end: int, end_at: int) -> tuple[int, int]:
        """Where the batch at a position ends, and the offset there: it is larger than what was asked for."""
        walk = segment.headers_from(position)
        next(walk)
        after, header = next(walk, (end, None))
        return (after, header.base_offset) if header is not None and after < end else (end, end_at)

    def bytes_between(self, first_offset: int, end_offset: int, log_end_offset: int) -> int:
        """About how many bytes of batches lie between two offsets; exact near the end of the log."""
        if first_offset >= end_offset:
            return 0
        start, end = self._rough_place(first_offset, log_end_offset), self._rough_place(end_offset, log_end_offset)
        between = sum(self._segments[index].size for index in range(start[0], end[0]))
        return between + end[1] - start[1]

    def _rough_place(self, offset: int, log_end_offset: int) -> tuple[int, int]:
        last = len(self._segments) - 1
        if offset >= log_end_offset:
            return last, self._segments.active.size
        found = self.recent.locate(offset)
        if found is not None:
            return last, found[0]
        index = max(0, self._segments.index_for(offset))
        return index, self._segments[index].indexed_position(offset)

    # --- by time ---

    def find_time(self, timestamp: int, start_offset: int, limit: int) -> FoundByTime | None:
        """The first record from `start_offset` on with this timestamp or a later one, if it is below `limit`."""
        for segment in self._segments.starting_with(start_offset):
            if segment.newest[0] < timestamp:
                continue
            from_offset = max(segment.time_index.offset_for(timestamp), start_offset)
            located = segment.locate(from_offset)
            if located is None:
                continue
            for position, header in segment.headers_from(located[0], scan.WALK_BYTES):
                if header.base_offset >= limit:
                    return None
                if header.max_timestamp < timestamp or header.last_offset < start_offset:
                    continue
                found = _find_in_batch(segment, position, header, timestamp, start_offset)
                if found is not None:
                    return found if found.offset < limit else None
        return None

    def newest_record(self, start_offset: int, limit: int) -> FoundByTime | None:
        """The first record that has the newest timestamp of all from `start_offset` on and below `limit`."""
        best: tuple[int, Segment, int, BatchHeader] | None = None
        for segment in self._segments.starting_with(start_offset):
            if segment.base_offset >= limit:
                break
            for position, header in self._newest_batches(segment, start_offset, limit):
                timestamp = header.max_timestamp
                if header.base_offset < start_offset:  # the log starts within it: its header counts too many records
                    times = (at for offset, at in _times(segment, position, header) if offset >= start_offset)
                    timestamp = max(times, default=-1)
                if timestamp >= 0 and (best is None or timestamp > best[0]):
                    best = (timestamp, segment, position, header)
        if best is None:
            return None
        return _find_in_batch(best[1], best[2], best[3], best[0], start_offset)

    @staticmethod
    def _newest_batches(segment: Segment, start_offset: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """Batches of a segment among which the newest is: the one its index names, when that may be told."""
        timestamp, offset = segment.newest
        if timestamp < 0:
            return
        located = segment.locate(offset)
        if (
            located is not None
            and located[1].base_offset >= start_offset
            and located[1].last_offset < limit
            and located[1].record_count  # one that compaction emptied has a time, and no record of it
        ):
            yield located
            return
        located = segment.locate(start_offset)
        if located is not None:
            for position, header in segment.headers_from(located[0], scan.WALK_BYTES):
                if header.last_offset >= limit:
                    return
                if header.record_count:
                    yield position, header

    # --- transactions ---

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between two offsets."""
        found: list[AbortedTransaction] = []
        for segment in self._segments.starting_with(first_offset):
            for aborted in segment.txn_index.read():
                if aborted.last_offset >= first_offset and aborted.first_offset < end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= end_offset:
                    return found
        return found


def _find_in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> FoundByTime | None:
    """The first record of a batch from an offset and a time on."""
    for offset, at in _times(segment, position, header):
        if at >= timestamp and offset >= start_offset:
            return FoundByTime(offset, at, header.partition_leader_epoch)
    return None


def _times(segment: Segment, position: int, header: BatchHeader) -> list[tuple[int, int]]:
    """Offset and timestamp of each record in a batch.

    One whose records cannot be read, which only a client can have made, counts as two records of its newest time.
    """
    batch = scan.read_batch(segment.file, position, header.size)
    try:
        return [(record.offset, record.timestamp) for record in iterate_records(batch)]
    except KafkaError:
        return [(header.base_offset, header.max_timestamp), (header.last_offset, header.max_timestamp)]
