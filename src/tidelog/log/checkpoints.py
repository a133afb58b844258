"""Kafka's checkpoint files: a version, a count and one entry a line.

The offset checkpoints of a log directory (`replication-offset-checkpoint`, `recovery-point-offset-checkpoint`,
`log-start-offset-checkpoint`, `cleaner-offset-checkpoint`) have lines `topic partition offset`. A power loss can leave
any of them empty or torn; such a file counts as absent, which for each of them only means more work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.storage import Storage

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

_VERSION = 0


def read(storage: Storage, path: str) -> dict[tuple[str, int], int]:
    """The offsets in a checkpoint, by topic and partition; empty when it is missing or garbled."""
    lines = read_lines(storage, path)
    offsets: dict[tuple[str, int], int] = {}
    for line in lines or ():
        try:
            topic, partition, offset = line.split(" ")
            offsets[(topic, int(partition))] = int(offset)
        except ValueError:
            return {}
    return offsets


def to_bytes(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """The file's content for these offsets."""
    return lines_to_bytes(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_lines(storage: Storage, path: str) -> list[str] | None:
    """The entries of a checkpoint file, whole or not at all: None when it is missing, torn or of another version."""
    try:
        text = storage.read_file(path).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    lines = text.splitlines()
    try:
        if int(lines[0]) != _VERSION or int(lines[1]) != len(lines) - 2:
            return None
    except (IndexError, ValueError):
        return None
    return lines[2:]


def lines_to_bytes(lines: Iterable[str]) -> bytes:
    """The file's content for these entries."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()
