"""What a compaction is asked to do and what it answers: plain values, since the job runs in another process.

A compaction of a log reads the segments below an offset, oldest first, and writes new ones beside them that lack what
is superseded. Its result is installed by the node, in a later step, after checking that nothing it read was cut since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.log.segment import RELATIVE_OFFSET_MAX

KEY_BYTES = 200
"""What a key costs in memory: itself or its digest, its offset, and its place in a dict that has just grown."""


class Source(NamedTuple):
    """A closed segment that is read."""

    base_offset: int
    size: int
    has_txn_index: bool


class CleanRequest(NamedTuple):
    """One round of compaction of one log."""

    directory: str
    sources: Sequence[Source]
    """From the oldest segment of the log to the last that may be touched."""
    first_dirty_offset: int
    """From here on keys may come more than once; below, each is there once."""
    end_offset: int
    """Where the segment behind the last source begins: nothing there is touched."""
    later_aborted: Sequence[tuple[int, int, int, int]]
    """Aborted transactions whose marker is behind the sources: producer, first offset, marker, last stable offset."""
    last_records: Mapping[int, tuple[int, int]]
    """Of each producer the log knows: the offset of its last record (-1 when only a marker is left) and its epoch."""
    now_ms: int
    delete_retention_ms: int
    max_keys: int
    """Keys held in memory. A log with more dirty ones is done in several rounds."""
    io_bytes: int
    """Read and written at once."""
    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int


class Cleaned(NamedTuple):
    """A new segment, in files that end in `.cleaned`, and how many sources it replaces."""

    first_source: int
    source_count: int
    size: int
    has_txn_index: bool


class CleanResult(NamedTuple):
    """What a round came to."""

    cleaned: Sequence[Cleaned]
    """Segments in which nothing changed are left as they are, and have none."""
    clean_to: int
    """Up to here every key is there once."""
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    unreadable_batches: int
    """Kept as they are: their records cannot be read, so nobody knows their keys."""
    damage: str
    """Where a batch is not what was written, and nothing was done; "" otherwise."""


def group(
    sources: Sequence[Source], index_sizes: Sequence[tuple[int, int]], request: CleanRequest
) -> list[tuple[int, int]]:
    """First source and number of sources of each new segment: as many as fit into one, so that they do not shrink.

    Sizes are those before the compaction, of the offset and of the time index too, as Kafka counts them.
    """
    groups: list[tuple[int, int]] = []
    first = 0
    while first < len(sources):
        size = sources[first].size
        offset_bytes, time_bytes = index_sizes[first]
        end = first + 1
        while end < len(sources):
            source = sources[end]
            following = sources[end + 1].base_offset if end + 1 < len(sources) else request.end_offset
            size += source.size
            offset_bytes += index_sizes[end][0]
            time_bytes += index_sizes[end][1]
            if size > request.segment_bytes or max(offset_bytes, time_bytes) > request.index_bytes:
                break
            if source.size and following - 1 - sources[first].base_offset > RELATIVE_OFFSET_MAX:
                break
            end += 1
        groups.append((first, end - first))
        first = end
    return groups
