"""Which files of a log directory to read, how far, and how to split them among tasks."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from tidelog.errors import ConfigError
from tidelog.log.checkpoints import HIGH_WATERMARKS
from tidelog.log.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, parse_directory_name, parse_file_name

SMALLEST_PIECE_BYTES = 32 * 1024 * 1024
TASKS_A_CORE = 3


@dataclass(frozen=True)
class Piece:
    """Bytes `start` up to before `end` of a segment: whole batches, but for what a crash left at its end."""

    path: str
    topic: str
    partition: int
    start: int
    end: int
    end_offset: int
    """Offsets from here on are not read: the high watermark, or more than any."""
    is_last: bool = False
    """Whether the log ends with it, so that `end_offset` must be reached."""

    @property
    def size(self) -> int:
        """How many bytes."""
        return self.end - self.start


@dataclass(frozen=True)
class LogFolder:
    """One partition's directory."""

    path: Path
    topic: str
    partition: int

    def segments(self) -> list[tuple[int, Path]]:
        """Base offset and file of each segment, in order; what is deleted, cleaned or swapped is not one."""
        found = []
        for path in self.path.iterdir():
            named = parse_file_name(path.name)
            if named is not None and named[1] == LOG_SUFFIX:
                found.append((named[0], path))
        return sorted(found)


def find_folders(paths: Iterable[str], topics: Sequence[str], pattern: str | None) -> list[LogFolder]:
    """The partitions below log directories, or named themselves, or that hold the segments named.

    Internal topics are left out unless they are asked for, by topic, pattern or path.
    """
    found: dict[Path, LogFolder] = {}
    for text in paths:
        matches = sorted(glob.glob(text)) if glob.has_magic(text) else [text]
        existing = [Path(match).absolute() for match in matches if Path(match).exists()]
        if not existing:
            raise ConfigError(f"option path: {text!r}: there is no such file or directory")
        for path in existing:
            for folder in _below(path):
                named_itself = folder.path in (path, path.parent)
                if _is_wanted(folder.topic, topics, pattern, named_itself):
                    found[folder.path] = folder
    if not found:
        raise ConfigError(f"option path: no partition's log is in {', '.join(paths)}")
    return sorted(found.values(), key=lambda folder: (folder.topic, folder.partition, str(folder.path)))


def _below(path: Path) -> Iterator[LogFolder]:
    if path.is_file():
        path = path.parent
    named = parse_directory_name(path.name)
    if named is not None and any(path.glob("*.log")):
        yield LogFolder(path, *named)
        return
    for inner in sorted(path.iterdir()):
        named = parse_directory_name(inner.name)
        if inner.is_dir() and named is not None:
            yield LogFolder(inner, *named)


def _is_wanted(topic: str, topics: Sequence[str], pattern: str | None, named_itself: bool) -> bool:
    if topics:
        return topic in topics
    if pattern is not None:
        return re.fullmatch(pattern, topic) is not None
    return named_itself or not topic.startswith("__")


def high_watermark(folder: LogFolder) -> int:
    """What the node wrote down as committed when it last did; it does so every few seconds and when it stops."""
    path = folder.path.parent / HIGH_WATERMARKS
    hint = "upTo=logEnd reads whatever is there"
    try:
        lines = path.read_text().splitlines()[2:]
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"{path} is missing, so nobody knows how far {folder.path.name} is committed; {hint}"
        ) from None
    for line in lines:
        topic, _, rest = line.partition(" ")
        if rest.startswith(f"{folder.partition} ") and topic == folder.topic:
            return int(rest.partition(" ")[2])
    raise ConfigError(f"{path} says nothing of {folder.path.name}; {hint}")


def plan_pieces(
    folder: LogFolder, end_offset: int, piece_bytes: int, only: frozenset[str] = frozenset()
) -> list[Piece]:
    """The segments that hold offsets below `end_offset`, large ones cut where their index knows a batch to begin."""
    pieces: list[Piece] = []
    segments = [(base_offset, path) for base_offset, path in folder.segments() if path.stat().st_size]
    for base_offset, path in segments:
        if base_offset >= end_offset or (only and str(path) not in only):
            continue
        size = path.stat().st_size
        whole = Piece(str(path), folder.topic, folder.partition, 0, size, end_offset)
        pieces += _cut(whole, index_positions(path), piece_bytes)
        if path == segments[-1][1]:
            pieces[-1] = replace(pieces[-1], is_last=True)
    return pieces


def _cut(whole: Piece, positions: Sequence[int], piece_bytes: int) -> list[Piece]:
    edges = [0]
    for position in positions:
        if position - edges[-1] >= piece_bytes and whole.end - position >= piece_bytes // 2:
            edges.append(position)
    edges.append(whole.end)
    return [replace(whole, start=start, end=end) for start, end in pairwise(edges) if start < end]


def index_positions(segment: Path) -> list[int]:
    """Where batches begin, as the segment's index knows some of them; empty without one.

    A segment that is written to has zeroes behind its last entry, or room that was never used.
    """
    path = segment.with_suffix(OFFSET_INDEX_SUFFIX)
    try:
        data = path.read_bytes()
    except OSError:
        return []
    positions = np.frombuffer(data[: len(data) // 8 * 8], ">u4").reshape(-1, 2)[:, 1].astype(np.int64)
    rising = np.flatnonzero(np.diff(positions, prepend=-1) <= 0)
    found: list[int] = positions[: rising[0]].tolist() if rising.size else positions.tolist()
    return found
