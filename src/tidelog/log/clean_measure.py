"""How much of a log waits for compaction, and how far it may go now."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tidelog.errors import CorruptionError
from tidelog.log.clean_plan import CleanRequest, Source
from tidelog.log.log import Log
from tidelog.log.segment import Segment


class Cleanable(NamedTuple):
    """What a compaction of a log would have to do."""

    first_dirty_offset: int
    end_offset: int
    """The first that must not be touched; a segment begins there."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Records have waited for longer than max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        """The share of the part that may be compacted which was not yet."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def measure(log: Log, cleaned_to: int | None, last_stable_offset: int, now_ms: int) -> Cleanable:
    """Look at a log that was compacted up to an offset.

    Never touched are the active segment, what is not committed and decided yet, and what is younger than
    min.compaction.lag.ms. An offset that lies outside the log counts for nothing: all of it is dirty.
    """
    segments = log.segments
    config = log.config
    first_dirty = log.log_start_offset
    if cleaned_to is not None and log.log_start_offset <= cleaned_to <= log.log_end_offset:
        first_dirty = cleaned_to
    active = segments[-1]
    limit = min(last_stable_offset, active.base_offset)
    end_offset = max((one.base_offset for one in segments if one.base_offset <= limit), default=first_dirty)
    dirty = [one for one, following in pairwise(segments) if following.base_offset > first_dirty]
    if config.min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.base_offset < end_offset and _newest(segment) > now_ms - config.min_compaction_lag_ms:
                end_offset = segment.base_offset
                break
    dirty = [one for one in dirty if one.base_offset < end_offset]
    clean_end = dirty[0].base_offset if dirty else end_offset
    clean_bytes = sum(one.size for one in segments if one.base_offset < clean_end)
    overdue_ms = now_ms - config.max_compaction_lag_ms
    is_overdue = overdue_ms > 0 and any(0 < _first(one) < overdue_ms for one in dirty)
    return Cleanable(first_dirty, end_offset, clean_bytes, sum(one.size for one in dirty), is_overdue)


def request_for(
    log: Log, cleanable: Cleanable, *, now_ms: int, max_keys: int, io_bytes: int
) -> tuple[CleanRequest, list[Segment]]:
    """The job that compacts it, and the segments it will read."""
    config = log.config
    sources = [one for one in log.segments if one.base_offset < cleanable.end_offset]
    last_records = {
        producer.producer_id: (producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
        for producer in log.producers.producers.values()
        if not producer.batches or producer.batches[-1].last_offset < cleanable.end_offset
    }
    request = CleanRequest(
        log.directory,
        [Source(one.base_offset, one.size, one.txn_index.exists) for one in sources],
        cleanable.first_dirty_offset,
        cleanable.end_offset,
        [
            (one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for segment in log.segments[len(sources) :]
            for one in segment.txn_index.read()
            if one.first_offset < cleanable.end_offset
        ],
        last_records,
        now_ms,
        config.delete_retention_ms,
        max_keys,
        io_bytes,
        config.segment_bytes,
        config.segment_index_bytes,
        config.index_interval_bytes,
    )
    return request, sources


def _newest(segment: Segment) -> int:
    try:
        return segment.newest[0]
    except CorruptionError:
        return -1


def _first(segment: Segment) -> int:
    try:
        return segment.first_timestamp
    except CorruptionError:
        return -1
