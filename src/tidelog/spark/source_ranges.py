"""How ranges of offsets become tasks: large ones are split so that all cores work, small ones share a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from tidelog.spark.fetching import OffsetRange

TASKS_A_CORE = 3
"""Pieces of about this many to a core even out what is not equally large or fast."""
SPARE = 10
"""A piece may be larger by this part of it: partitions that differ by a few records are cut into equally many, and no
core is left with one piece more than the others."""
SMALLEST_PIECE = 25_000
"""Offsets below which splitting costs more than it gains."""
SHARED_TASK = 10_000
"""Offsets up to which several partitions are read by one task."""


@dataclass(init=False)
class RangesPartition(InputPartition):
    """What one task reads: one range or several small ones."""

    ranges: tuple[OffsetRange, ...]
    share: int
    """How many records of the query a core will see, of which this task's are a part."""

    def __init__(self, ranges: tuple[OffsetRange, ...], share: int) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.share = share


def plan_tasks(
    ranges: Sequence[OffsetRange], *, parallelism: int, min_partitions: int | None, max_records: int | None
) -> list[RangesPartition]:
    """At least `min_partitions` tasks where there are that many offsets, none over `max_records` offsets."""
    wanted = [each for each in ranges if each.size > 0]
    total = sum(each.size for each in wanted)
    if not total:
        return []
    if min_partitions is not None:
        piece = max(1, total // min_partitions)
    else:
        piece = max(SMALLEST_PIECE, -(-total // (TASKS_A_CORE * max(parallelism, 1))))
        piece += piece // SPARE
    if max_records is not None:
        piece = min(piece, max_records)
    pieces = [part for each in wanted for part in _split(each, piece)]
    if min_partitions is not None or max_records is not None:
        return [RangesPartition((each,), total // max(parallelism, 1)) for each in pieces]
    return _share(pieces, total // max(parallelism, 1))


def _split(whole: OffsetRange, piece: int) -> list[OffsetRange]:
    """Equal parts of at most `piece` offsets."""
    count = -(-whole.size // piece)
    edges = [whole.start + whole.size * number // count for number in range(count + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(edges)]


def _share(pieces: Sequence[OffsetRange], share: int) -> list[RangesPartition]:
    """Small ranges that stand beside each other in one task: a task costs more than a few thousand records."""
    tasks: list[list[OffsetRange]] = []
    size = SHARED_TASK
    for each in pieces:
        if size + each.size > SHARED_TASK:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.size
    return [RangesPartition(tuple(task), share) for task in tasks]
