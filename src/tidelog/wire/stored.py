"""Messages as they are stored in Kafka's own topics, where each carries its type and version before it.

__cluster_metadata    frame version 1, record type, version (unsigned varints), message
__consumer_offsets,   key: record type (int16), key message of version 0
__transaction_state   value: version (int16), value message
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from tidelog.errors import DecodeError
from tidelog.wire.codec import decode_exact, encode
from tidelog.wire.message import Message
from tidelog.wire.record_table import GROUP_RECORDS, METADATA_RECORDS, TRANSACTION_RECORDS
from tidelog.wire.varints import Buffer, decode_unsigned, encode_unsigned

FRAME_VERSION = 1
M = TypeVar("M", bound=Message)
_short = struct.Struct(">h")
_classes: dict[tuple[str, str], type[Message]] = {}


def encode_metadata_record(record: Message, version: int) -> bytes:
    """A record's value in the metadata log; its type is its class's API_KEY."""
    head = bytes((FRAME_VERSION,)) + encode_unsigned(type(record).API_KEY) + encode_unsigned(version)
    return head + encode(record, version)


def decode_metadata_record(data: Buffer) -> tuple[Any, int]:
    """(record, version). An unknown type or version is a DecodeError: a node must not guess at its metadata."""
    try:
        frame_version, offset = decode_unsigned(data, 0)
        if frame_version != FRAME_VERSION:
            raise DecodeError(f"a metadata record with frame version {frame_version}")
        record_type, offset = decode_unsigned(data, offset)
        version, offset = decode_unsigned(data, offset)
    except IndexError:
        raise DecodeError("a metadata record cut short") from None
    row = METADATA_RECORDS.get(record_type)
    if row is None:
        raise DecodeError(f"a metadata record of the unknown type {record_type}")
    return decode_exact(_record_class(*row), version, data, offset), version


def encode_versioned(message: Message, version: int) -> bytes:
    """A message with its version before it, as an int16."""
    return _short.pack(version) + encode(message, version)


def decode_versioned(cls: type[M], data: Buffer) -> tuple[M, int]:
    """(message, version) of a message with its version before it."""
    version = _leading_short(data)
    return decode_exact(cls, version, data, 2), version


def encode_coordinator_key(key: Message) -> bytes:
    """The key of a group's or transaction's record: its type, then itself."""
    return _short.pack(type(key).API_KEY) + encode(key, 0)


def decode_group_record(key: Buffer, value: Buffer | None) -> tuple[Any, Any] | None:
    """(key, value or None for a tombstone) of `__consumer_offsets`; None for a type that is not known here."""
    return _decode_coordinator_record(GROUP_RECORDS, key, value)


def decode_transaction_record(key: Buffer, value: Buffer | None) -> tuple[Any, Any] | None:
    """(key, value or None for a tombstone) of `__transaction_state`; None for a type that is not known here."""
    return _decode_coordinator_record(TRANSACTION_RECORDS, key, value)


def _decode_coordinator_record(
    table: Mapping[int, tuple[str, str, str]], key: Buffer, value: Buffer | None
) -> tuple[Any, Any] | None:
    row = table.get(_leading_short(key))
    if row is None:
        return None
    module, key_name, value_name = row
    decoded_key = decode_exact(_record_class(module, key_name), 0, key, 2)
    if value is None:
        return decoded_key, None
    return decoded_key, decode_versioned(_record_class(module, value_name), value)[0]


def _leading_short(data: Buffer) -> int:
    try:
        return int(_short.unpack_from(data)[0])
    except struct.error:
        raise DecodeError("a stored message without a version") from None


def _record_class(module: str, name: str) -> type[Message]:
    cls = _classes.get((module, name))
    if cls is None:
        cls = _classes[module, name] = getattr(import_module(f"tidelog.wire.records.{module}"), name)
    return cls
