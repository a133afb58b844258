"""From batches to producer state: as they are appended, and again from the files."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.errors import CorruptionError, KafkaError
from tidelog.log import scan
from tidelog.log.producer_state import BATCHES_KEPT, KnownBatch, ProducerState
from tidelog.log.segment import Segment
from tidelog.log.segments import Segments
from tidelog.log.snapshot_files import SnapshotFiles
from tidelog.log.txn_index import AbortedTransaction
from tidelog.wire.batch import BatchHeader, ControlType, control_type, end_marker_coordinator_epoch, iterate_records

_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_RECALL_ENTRIES = 64
"""How many index entries back a start looks for batches that producers may still send again: as many large batches, or
some thousand small ones."""


class Marker(NamedTuple):
    """The end of a transaction."""

    is_abort: bool
    coordinator_epoch: int


def read_marker(header: BatchHeader) -> Marker | None:
    """What a control batch says of its producer's transaction; None when compaction emptied it, or it is another's."""
    for record in iterate_records(header):
        kind = control_type(record.key)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            return Marker(kind == ControlType.ABORT, end_marker_coordinator_epoch(record.value))
        break
    return None


def note(header: BatchHeader, state: ProducerState, now_ms: int) -> AbortedTransaction | None:
    """A batch with a producer id is in the log; the transaction it aborted, for the index.

    A control batch must be whole in its header's buffer.
    """
    attributes = header.attributes
    if not attributes & _CONTROL:
        state.note_batch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_sequence,
            header.base_offset,
            header.base_offset + header.last_offset_delta,
            header.max_timestamp,
            bool(attributes & _TRANSACTIONAL),
            now_ms,
        )
        return None
    try:
        marker = read_marker(header)
    except KafkaError:
        return None  # a leader wrote something we cannot read; it is stored all the same
    if marker is None:
        return None
    completed = state.note_marker(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        header.base_offset,
        header.max_timestamp,
        is_abort=marker.is_abort,
        now_ms=now_ms,
    )
    if completed is None or not completed.is_aborted:
        return None
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
    )


def load(
    segments: Segments,
    state: ProducerState,
    snapshots: SnapshotFiles,
    end_offset: int,
    *,
    is_proof_wanted: bool = False,
) -> None:
    """Know what a log that ends at `end_offset` knows: the newest snapshot, then the batches after it.

    Without one all batches count that are there, those before the log's start, too: producers know nothing of it. One
    of before the first segment counts for nothing: who wrote in between would be refused for what it seems to lack.
    Where proof is wanted every checksum is looked at, and CorruptionError raised: rot may have made a marker a record,
    and a transaction that never ends holds readers up before they come to where it rotted.
    """
    first_offset = segments[0].base_offset
    loaded = snapshots.load(end_offset)
    producers, start_offset = loaded if loaded is not None and loaded[1] >= first_offset else ((), first_offset)
    state.start_from(producers, start_offset)
    for segment in segments.starting_with(start_offset):
        if max(segment.base_offset, start_offset) >= end_offset:
            break
        _replay(segment, state, start_offset, end_offset, is_proof_wanted)
    state.end_offset = end_offset


def _replay(segment: Segment, state: ProducerState, start_offset: int, end_offset: int, is_proof_wanted: bool) -> None:
    position = 0
    if start_offset > segment.base_offset:
        located = segment.locate(start_offset)
        if located is None:
            return
        position = located[0]
    for found, header in segment.headers_from(position, scan.WALK_BYTES):
        if header.base_offset >= end_offset:
            return
        if is_proof_wanted or (header.producer_id >= 0 and header.is_control):
            header = scan.proven(segment.file, found, header)
        if header.producer_id >= 0:
            note(header, state, 0)


def recall_batches(segments: Segments, state: ProducerState) -> None:
    """Know again the last five batches of producers that wrote shortly before the end of the log.

    A snapshot keeps only the newest of each, and a producer whose answers were lost with the connection sends all that
    were in flight: without this a clean restart would answer them with OUT_OF_ORDER_SEQUENCE_NUMBER.
    """
    if not state.producers:
        return
    recalled: dict[tuple[int, int], list[KnownBatch]] = {}
    try:
        for segment, position in _tail(segments):
            for _, header in segment.headers_from(position, scan.WALK_BYTES):
                if header.producer_id >= 0 and not header.is_control:
                    batches = recalled.setdefault((header.producer_id, header.producer_epoch), [])
                    batches.append(
                        KnownBatch(
                            header.base_sequence,
                            header.last_sequence,
                            header.base_offset,
                            header.last_offset,
                            header.max_timestamp,
                        )
                    )
    except CorruptionError:
        return  # whoever reads there will be told
    for producer in state.producers.values():
        batches = recalled.get((producer.producer_id, producer.epoch), [])
        if producer.batches and batches and batches[-1].last_offset == producer.batches[-1].last_offset:
            producer.batches = batches[-BATCHES_KEPT:]


def _tail(segments: Segments) -> list[tuple[Segment, int]]:
    """Segments and batch starts from which on the end of a log is read, oldest first."""
    tail: list[tuple[Segment, int]] = []
    wanted = _RECALL_ENTRIES
    for segment in reversed(list(segments)):
        position, count = segment.tail_start(wanted)
        tail.append((segment, position))
        wanted -= count
        if position or wanted <= 0:
            break
    return tail[::-1]
