"""Which segments a log no longer has to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import CorruptionError
from tidelog.log.names import LOG_SUFFIX
from tidelog.log.segment import Segment
from tidelog.log.segments import Segments

if TYPE_CHECKING:
    from tidelog.config import TopicConfig


def count_expired(
    segments: Segments,
    config: TopicConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    up_to_offset: int,
    log_end_offset: int,
) -> int:
    """How many of the oldest segments may go.

    Those that end before the log's start always; by age and by size only where the policy says delete. Never one that
    reaches beyond `up_to_offset`, the high watermark. The newest segment goes too when all its records are too old,
    but an empty one never does.
    """
    deletes = config.is_deleted_by_retention
    spare_bytes = segments.size_bytes - config.retention_bytes if deletes and config.retention_bytes >= 0 else -1
    count = 0
    for index, segment in enumerate(segments):
        is_newest = index == len(segments) - 1
        end_offset = log_end_offset if is_newest else segments[index + 1].base_offset
        if end_offset > up_to_offset or (is_newest and not segment.size):
            break
        spare_bytes -= segment.size
        if not (
            (not is_newest and end_offset <= log_start_offset)
            or (deletes and spare_bytes >= 0)
            or (deletes and _is_too_old(segment, config.retention_ms, now_ms))
        ):
            break
        count += 1
    return count


def _is_too_old(segment: Segment, retention_ms: int, now_ms: int) -> bool:
    """By its newest record, or by when its file was written where records have no time."""
    if retention_ms < 0:
        return False
    try:
        newest = segment.newest[0]
    except CorruptionError:
        newest = -1  # its index is gone and its batches are damaged: it still has to go one day
    if newest < 0:
        newest = segment.storage.modified_ms(segment.path(LOG_SUFFIX))
    return now_ms - newest > retention_ms
