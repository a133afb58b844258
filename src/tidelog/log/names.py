"""What Kafka calls the files and directories of a log."""

from __future__ import annotations

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX = ".deleted"
"""Out of use, to be removed after file.delete.delay.ms."""
CLEANED_SUFFIX = ".cleaned"
"""Being written by a compaction; worthless after a crash."""
SWAP_SUFFIX = ".swap"
"""Complete and about to take the place of the segments it was made from; finished after a crash."""
METADATA_SNAPSHOT_DELETED_SUFFIX = ".checkpoint.deleted"
"""A snapshot of the metadata log on its way out; its owner is the quorum."""

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_DELETE_MARK = "-delete"
_STRAY_MARK = "-stray"
_FUTURE_MARK = "-future"
_OFFSET_DIGITS = 20
_NAME_BYTES = 255
"""The longest name a file system takes."""


def directory_name(topic: str, partition: int) -> str:
    """Where a partition's files are, below a log directory."""
    return f"{topic}-{partition}"


def parse_directory_name(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory that is in use; None for one set aside, and for anything else."""
    if name.endswith((_DELETE_MARK, _STRAY_MARK, _FUTURE_MARK)):
        return None
    topic, dash, digits = name.rpartition("-")
    if not topic or not dash or not (digits.isascii() and digits.isdigit()):
        return None
    return topic, int(digits)


def deleted_directory_name(topic: str, partition: int, unique: bytes) -> str:
    """The name a partition's directory gets when it is deleted, before its files go."""
    return _marked(topic, partition, unique, _DELETE_MARK)


def stray_directory_name(topic: str, partition: int, unique: bytes) -> str:
    """The name of a directory the metadata does not know: kept for people, never served."""
    return _marked(topic, partition, unique, _STRAY_MARK)


def is_deleted_directory(name: str) -> bool:
    """Whether this is a directory whose deletion was begun."""
    return name.endswith(_DELETE_MARK) and "." in name


def _marked(topic: str, partition: int, unique: bytes, mark: str) -> str:
    tail = f"-{partition}.{unique.hex()}{mark}"
    return topic[: _NAME_BYTES - len(tail)] + tail


def file_name(offset: int, suffix: str) -> str:
    """The name of a segment's file, or of a snapshot."""
    return f"{offset:0{_OFFSET_DIGITS}d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """Offset and suffix of a file named after an offset; None for any other."""
    digits, suffix = name[:_OFFSET_DIGITS], name[_OFFSET_DIGITS:]
    if len(digits) != _OFFSET_DIGITS or not suffix.startswith(".") or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits), suffix
