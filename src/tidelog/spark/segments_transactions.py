"""What a reader of committed records must leave out of a partition's files, found by the headers of its batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tidelog.spark.decode import Batches, Decoder
from tidelog.spark.segments_reading import SegmentBytes
from tidelog.wire.batch import ControlType, control_type, iterate_records, read_header
from tidelog.wire.batch_header import CONTROL, TRANSACTIONAL

Span = tuple[int, int, int]
"""Producer id, first and last offset of an aborted transaction."""


def committed_view(segments: Sequence[Path], end_offset: int, decoder: Decoder) -> tuple[list[Span], int]:
    """The transactions that were aborted, and the offset before which none is open any more (the last stable one)."""
    opened: dict[int, int] = {}
    aborted: list[Span] = []
    for path in segments:
        with SegmentBytes(path, 0, path.stat().st_size) as data:
            for batches in data.batches(decoder):
                for index in np.flatnonzero(batches.attributes & TRANSACTIONAL).tolist():
                    offset = int(batches.base_offsets[index])
                    if offset >= end_offset:
                        break
                    producer = int(batches.producer_ids[index])
                    if not batches.attributes[index] & CONTROL:
                        opened.setdefault(producer, offset)
                        continue
                    first = opened.pop(producer, None)
                    if first is not None and _is_abort(batches, index):
                        aborted.append((producer, first, offset))
    return aborted, min(opened.values(), default=end_offset)


def _is_abort(batches: Batches, index: int) -> bool:
    header = read_header(batches.data, int(batches.positions[index]))
    return any(control_type(record.key) == ControlType.ABORT for record in iterate_records(header))
