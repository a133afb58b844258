"""Segments and metadata snapshots: record batches, with what the records of Kafka's own topics mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tidelog.cli.dumps import Damage, Found, Item, is_zeros, unused
from tidelog.cli.records_text import json_fields, shown, time_text
from tidelog.errors import DecodeError, KafkaError
from tidelog.wire import codec, stored
from tidelog.wire.batch import (
    BatchHeader,
    Compression,
    ControlType,
    Record,
    control_type,
    end_marker_coordinator_epoch,
    iterate_records,
    read_header,
)
from tidelog.wire.message import Message
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.leader_change_message import LeaderChangeMessage
from tidelog.wire.records.snapshot_footer_record import SnapshotFooterRecord
from tidelog.wire.records.snapshot_header_record import SnapshotHeaderRecord
from tidelog.wire.records.voters_record import VotersRecord
from tidelog.wire.uuids import to_text

_METADATA = "__cluster_metadata-"
_GROUPS = "__consumer_offsets-"
_TRANSACTIONS = "__transaction_state-"
_CONTROL_RECORDS: dict[int, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}


def read_segment(content: memoryview, path: str) -> Iterator[Item]:
    """Every batch with its records; after a batch that does not match its checksum the next one is tried."""
    directory = os.path.basename(os.path.dirname(os.path.abspath(path)))
    if path.endswith(".checkpoint"):
        directory = _METADATA
    position = 0
    expected_offset = -1
    while position < len(content):
        if content[position : position + 12] == bytes(12) and is_zeros(content[position:]):
            yield unused(content, position)
            return
        try:
            batch = read_header(content, position)
        except KafkaError as error:
            yield Damage(position, error.message)
            return
        missing = position + batch.size - len(content)
        if missing > 0:
            yield Damage(position, f"a batch of {batch.size} bytes is cut short: {missing} are missing")
            return
        if not batch.crc_matches():
            yield Damage(position, f"the batch at offset {batch.base_offset} does not match its checksum")
        else:
            if batch.base_offset < expected_offset:
                yield Damage(position, f"offset {batch.base_offset} comes after offset {expected_offset - 1}")
            yield from _batch(batch, directory)
        expected_offset = batch.next_offset
        position += batch.size


def _batch(batch: BatchHeader, directory: str) -> Iterator[Item]:
    records: list[dict[str, Any]] = []
    lines = [_batch_text(batch)]
    damage = None
    try:
        for record in iterate_records(batch):
            fields, text = _record(record, batch, directory)
            records.append(fields)
            lines.append(f"  {record.offset}  {time_text(record.timestamp)}  {text}")
    except (KafkaError, DecodeError) as error:
        damage = Damage(batch.position, str(error))
    fields = {
        "at": batch.position,
        "size": batch.size,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "record_count": batch.record_count,
        "leader_epoch": batch.partition_leader_epoch,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "compression": _compression(batch),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "crc": batch.crc,
        "records": records,
    }
    yield Found(fields, "\n".join(lines))
    if damage is not None:
        yield damage


def _batch_text(batch: BatchHeader) -> str:
    words = [
        f"@{batch.position}",
        f"offsets {batch.base_offset}-{batch.last_offset}",
        f"{batch.record_count} record{'' if batch.record_count == 1 else 's'}",
        f"{batch.size} bytes",
        f"epoch {batch.partition_leader_epoch}",
        time_text(batch.max_timestamp) + (" append time" if batch.is_log_append_time else ""),
        _compression(batch) if batch.compression else "",
        f"producer {batch.producer_id}/{batch.producer_epoch}" if batch.has_producer_id else "",
        f"sequence {batch.base_sequence}-{batch.last_sequence}" if batch.base_sequence >= 0 else "",
        "transactional" if batch.is_transactional else "",
        "control" if batch.is_control else "",
        f"delete horizon {time_text(batch.delete_horizon_ms)}" if batch.delete_horizon_ms is not None else "",
    ]
    return "  ".join(filter(None, words))


def _compression(batch: BatchHeader) -> str:
    try:
        return Compression(batch.compression).name.lower()
    except ValueError:
        return f"unknown ({batch.compression})"


class _Place:
    """A record as `json_fields` wants one."""

    __slots__ = ("headers", "key", "offset", "partition", "timestamp_ms", "topic", "value")

    def __init__(self, record: Record) -> None:
        self.topic = self.partition = None
        self.offset, self.timestamp_ms = record.offset, record.timestamp
        self.key, self.value, self.headers = record.key, record.value, record.headers


def _record(record: Record, batch: BatchHeader, directory: str) -> tuple[dict[str, Any], str]:
    if batch.is_control:
        return _control(record)
    head = {"offset": record.offset, "timestamp": record.timestamp}
    if directory.startswith(_METADATA):
        message, version = stored.decode_metadata_record(record.value or b"")
        return head | {"type": type(message).__name__, "version": version, "data": as_fields(message)}, as_text(message)
    if directory.startswith((_GROUPS, _TRANSACTIONS)) and record.key is not None:
        is_group = directory.startswith(_GROUPS)
        decode = stored.decode_group_record if is_group else stored.decode_transaction_record
        pair = decode(record.key, record.value)
        if pair is not None:
            key, value = pair
            data = {"type": type(key).__name__, "key": as_fields(key), "value": as_fields(value) if value else None}
            return head | data, f"{as_text(key)} {as_text(value) if value else 'null'}"
    fields = json_fields(_Place(record))
    del fields["topic"], fields["partition"]
    headers = "".join(f"  {name}={shown(value)}" for name, value in record.headers)
    return fields, f"key={shown(record.key)}  value={shown(record.value)}{headers}"


def _control(record: Record) -> tuple[dict[str, Any], str]:
    kind = control_type(record.key)
    head: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        epoch = end_marker_coordinator_epoch(record.value)
        name = ControlType(kind).name
        return head | {"type": name, "coordinator_epoch": epoch}, f"{name} by the coordinator's epoch {epoch}"
    if kind not in _CONTROL_RECORDS:
        return head | {"type": kind}, f"control record of unknown type {kind}"
    message, _ = codec.decode(_CONTROL_RECORDS[kind], 0, record.value or b"")
    return head | {"type": type(message).__name__, "data": as_fields(message)}, as_text(message)


def as_fields(message: Message) -> dict[str, Any]:
    """A message as JSON: ids as people write them, bytes as text or base64."""
    return {field[0]: _as_json(getattr(message, field[0]), field[1]) for field in message.FIELDS}


def as_text(message: Message) -> str:
    """A message for people: what differs from its defaults."""
    default = type(message)()
    told = [
        f"{name}={_value_text(getattr(message, name), kind)}"
        for name, kind, *_ in message.FIELDS
        if getattr(message, name) != getattr(default, name)
    ]
    return " ".join([type(message).__name__, *told])


def _value_text(value: Any, kind: Any) -> str:
    if isinstance(value, Message):
        return f"({as_text(value).partition(' ')[2]})"
    if isinstance(value, list | tuple):
        inner = kind[0] if isinstance(kind, tuple) else str(kind).removeprefix("[]")
        return f"[{', '.join(_value_text(one, inner) for one in value)}]"
    return str(_as_json(value, kind))


def _as_json(value: Any, kind: Any) -> Any:
    if isinstance(value, Message):
        return as_fields(value)
    if isinstance(value, list | tuple):
        inner = kind[0] if isinstance(kind, tuple) else str(kind).removeprefix("[]")
        return [_as_json(one, inner) for one in value]
    if isinstance(value, bytes | memoryview):
        return to_text(bytes(value)) if kind == "uuid" else shown(bytes(value), 1 << 30)
    return value
