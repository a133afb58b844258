"""`partition.metadata`: which topic, by id, a partition's directory belongs to (KIP-516)."""

from __future__ import annotations

from tidelog.errors import DecodeError
from tidelog.log.names import LOG_SUFFIX, PARTITION_METADATA
from tidelog.storage import Storage
from tidelog.wire.uuids import from_text, to_text


def read(storage: Storage, directory: str) -> bytes | None:
    """The topic id; None when the file is missing or garbled."""
    try:
        text = storage.read_file(f"{directory}/{PARTITION_METADATA}").decode()
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        return from_text(fields["topic_id"].strip()) if fields["version"].strip() == "0" else None
    except (FileNotFoundError, ValueError, KeyError, DecodeError):
        return None


def write(storage: Storage, directory: str, topic_id: bytes) -> None:
    """Write the file unless it already says so."""
    if read(storage, directory) != topic_id:
        storage.replace(f"{directory}/{PARTITION_METADATA}", to_bytes(topic_id))


def has_records(storage: Storage, directory: str) -> bool:
    """Whether there is anything in a partition's directory that must not be taken for another topic's."""
    return any(storage.size(f"{directory}/{name}") for name in storage.list(directory) if name.endswith(LOG_SUFFIX))


def to_bytes(topic_id: bytes) -> bytes:
    """The file's content."""
    return f"version: 0\ntopic_id: {to_text(topic_id)}".encode()
