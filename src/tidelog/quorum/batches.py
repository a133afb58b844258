"""The batches of the metadata log and of snapshots: framed metadata records, and the quorum's own control records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.errors import CorruptionError, DecodeError, KafkaError
from tidelog.quorum.listener import CommittedBatch
from tidelog.wire import codec
from tidelog.wire.batch import (
    BatchHeader,
    ControlType,
    Record,
    build_batch,
    check_crc,
    control_key,
    control_type,
    iterate_batches,
    iterate_records,
)
from tidelog.wire.message import Message
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.leader_change_message import LeaderChangeMessage
from tidelog.wire.records.snapshot_footer_record import SnapshotFooterRecord
from tidelog.wire.records.snapshot_header_record import SnapshotHeaderRecord
from tidelog.wire.records.voters_record import VotersRecord
from tidelog.wire.stored import decode_metadata_record, encode_metadata_record
from tidelog.wire.varints import Buffer

RecordAndVersion = tuple[Message, int]
"""A metadata record and the version it is written in, which the controller takes from metadata.version."""

frame = encode_metadata_record

CONTROL_RECORDS: dict[int, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_CONTROL_TYPES = {record_class: record_type for record_type, record_class in CONTROL_RECORDS.items()}


def build_data_batch(values: Sequence[bytes], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """A batch of framed metadata records."""
    records = [Record(base_offset + index, timestamp_ms, None, value) for index, value in enumerate(values)]
    return build_batch(records, partition_leader_epoch=epoch)


def build_control_batch(controls: Sequence[Message], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """A batch of the quorum's own records, each in version 0 as Apache Kafka writes them."""
    records = [
        Record(base_offset + index, timestamp_ms, control_key(_CONTROL_TYPES[type(control)]), codec.encode(control, 0))
        for index, control in enumerate(controls)
    ]
    return build_batch(records, partition_leader_epoch=epoch, is_control=True)


def iterate(data: Buffer, name: str = "metadata log") -> Iterator[BatchHeader]:
    """The batches in a buffer; CorruptionError unless each is whole and its checksum right."""
    try:
        for batch in iterate_batches(data):
            check_crc(batch)
            yield batch
    except KafkaError as error:
        raise CorruptionError(f"{name}: {error}") from None


def whole_batches(data: Buffer) -> Buffer:
    """The buffer without a batch cut short at its end: Apache Kafka answers a fetch by bytes, not by batches."""
    end = 0
    for batch in iterate_batches(data, allow_partial=True):
        check_crc(batch)
        end = batch.position + batch.size
    return data if end == len(data) else memoryview(data)[:end]


def controls_of(batch: BatchHeader) -> Iterator[tuple[int, Message]]:
    """Offset and content of each control record in a batch, as far as its type is known here."""
    try:
        for record in iterate_records(batch):
            record_class = CONTROL_RECORDS.get(control_type(record.key))
            if record_class is not None:
                yield record.offset, codec.decode(record_class, 0, record.value or b"")[0]
    except (KafkaError, DecodeError) as error:
        raise CorruptionError(f"control batch at offset {batch.base_offset}: {error}") from None


def records_of(batch: BatchHeader) -> list[Message]:
    """The metadata records in a batch; none in a control batch."""
    if batch.is_control:
        return []
    try:
        return [decode_metadata_record(record.value or b"")[0] for record in iterate_records(batch)]
    except (KafkaError, DecodeError) as error:
        raise CorruptionError(f"metadata batch at offset {batch.base_offset}: {error}") from None


def committed_batch(batch: BatchHeader) -> CommittedBatch:
    """A batch as the listener is told of it."""
    return CommittedBatch(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.max_timestamp,
        records_of(batch),
        batch.size,
    )
