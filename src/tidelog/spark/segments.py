"""`spark.read.format("tidelog_segments")`: log directories as files, for backfill and forensics without a broker."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidelog.errors import ConfigError
from tidelog.spark.decode import Batches, Decoder
from tidelog.spark.option_texts import OptionTexts
from tidelog.spark.segments_files import (
    SMALLEST_PIECE_BYTES,
    TASKS_A_CORE,
    LogFolder,
    Piece,
    find_folders,
    high_watermark,
    index_positions,
    plan_pieces,
)
from tidelog.spark.segments_reading import SegmentBytes, corrupt
from tidelog.spark.source_schema import FORENSIC_COLUMNS, SOURCE_COLUMNS, check_schema
from tidelog.spark.workers import settle

_EVERYTHING = (1 << 63) - 1
_CHOICES = {
    "upTo": ("highWatermark", "logEnd"),
    "onCorruption": ("fail", "skip"),
    "includeControl": ("false", "true"),
    "kafka.isolation.level": ("read_uncommitted", "read_committed"),
}
_NAMES = ("path", "paths", "subscribe", "subscribePattern", *_CHOICES)


@dataclass(frozen=True)
class SegmentsOptions:
    """All options of a read of files."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    to_log_end: bool = False
    skip_damaged: bool = False
    include_control: bool = False
    read_committed: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SegmentsOptions:
        """Check and convert; ConfigError names the option and what is wrong with it."""
        texts = OptionTexts(given)
        texts.refuse_unknown(_NAMES, "this source", {})
        path, several = texts.get("path"), texts.get("paths")
        paths = json.loads(several) if several is not None else [] if path is None else [path]
        if not paths:
            raise ConfigError("say which log directories to read: load(PATH), a directory, a file or a pattern of them")
        chosen = {name: texts.choice(name, choices) for name, choices in _CHOICES.items()}
        return cls(
            paths=tuple(paths),
            topics=tuple(texts.words("subscribe")),
            pattern=texts.get("subscribePattern"),
            to_log_end=chosen["upTo"] == "logEnd",
            skip_damaged=chosen["onCorruption"] == "skip",
            include_control=chosen["includeControl"] == "true",
            read_committed=chosen["kafka.isolation.level"] == "read_committed",
        )


@dataclass(init=False)
class PiecesPartition(InputPartition):
    """What one task reads, and which transactions it leaves out."""

    piece: Piece
    aborted: tuple[tuple[int, int, int], ...]
    share_bytes: int
    """How much of the query a core will see."""

    def __init__(self, piece: Piece, aborted: tuple[tuple[int, int, int], ...], share_bytes: int) -> None:
        super().__init__(None)
        self.piece = piece
        self.aborted = aborted
        self.share_bytes = share_bytes


class SegmentsReader(DataSourceReader):
    """Reads files as they are. It travels to the executors, which must see the same files under the same paths."""

    def __init__(self, options: Mapping[str, str], schema: StructType, parallelism: int) -> None:
        self.options = SegmentsOptions.parse(options)
        check_schema(schema, SOURCE_COLUMNS | FORENSIC_COLUMNS)
        self.schema = schema
        self.parallelism = parallelism

    def partitions(self) -> list[InputPartition]:
        """One task a segment, and more for large ones."""
        options = self.options
        folders = find_folders(options.paths, options.topics, options.pattern)
        only = frozenset(str(Path(path).absolute()) for path in options.paths if Path(path).is_file())
        plans = [(folder, _EVERYTHING if options.to_log_end else high_watermark(folder)) for folder in folders]
        total = sum(path.stat().st_size for folder in folders for _, path in folder.segments())
        piece_bytes = max(SMALLEST_PIECE_BYTES, total // (TASKS_A_CORE * max(self.parallelism, 1)))
        tasks: list[InputPartition] = []
        for folder, end_offset in plans:
            aborted, end_offset = self._committed(folder, end_offset)
            pieces = plan_pieces(folder, end_offset, piece_bytes, only)
            tasks += [PiecesPartition(piece, aborted, total // max(self.parallelism, 1)) for piece in pieces]
        return tasks

    def _committed(self, folder: LogFolder, end_offset: int) -> tuple[tuple[tuple[int, int, int], ...], int]:
        if not self.options.read_committed:
            return (), end_offset
        from tidelog.spark.segments_transactions import committed_view

        segments = [path for base, path in folder.segments() if base < end_offset]
        aborted, end_offset = committed_view(segments, end_offset, self._decoder({}))
        return tuple(aborted), end_offset

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In an executor: the records of one piece."""
        if not isinstance(partition, PiecesPartition):
            return
        piece = partition.piece
        path = Path(piece.path)
        decoder = self._decoder(
            {"topic": piece.topic, "partition": piece.partition, "path": piece.path}, partition.share_bytes // 500, path
        )
        settle()
        with SegmentBytes(path, piece.start, piece.end) as data:
            reached = 0
            while True:
                for batches in data.batches(decoder):
                    self._hide(batches, partition.aborted)
                    yield from decoder.decode(batches, 0, piece.end_offset)
                    reached = batches.next_offset
                    if reached >= piece.end_offset:
                        return
                if data.trouble is None:
                    break
                self._pass_trouble(data, piece)
        if piece.is_last and not self.options.to_log_end:
            what = f"the log ends with offset {reached - 1}, before the high watermark {piece.end_offset}"
            if not self.options.skip_damaged:
                raise corrupt(path, piece.end, what)
            _tell(path, piece.end, what)

    def _pass_trouble(self, data: SegmentBytes, piece: Piece) -> None:
        """Behind a damaged place the index may know where a batch begins; else the rest of the piece is lost."""
        assert data.trouble is not None
        position, what = data.trouble
        if self.options.to_log_end and what == "a record batch is torn" and piece.end == data.path.stat().st_size:
            # The last append of a node that was killed, or of one that is writing just now.
            data.go_to(piece.end)
            return
        if not self.options.skip_damaged:
            raise corrupt(data.path, position, what)
        following = next((each for each in index_positions(data.path) if each > position), piece.end)
        _tell(data.path, position, f"{what}; {min(following, piece.end) - position} bytes are skipped")
        data.go_to(min(following, piece.end))

    def _decoder(self, constants: dict[str, Any], expected: int = 0, path: Path | None = None) -> Decoder:
        def skip(position: int, what: str) -> None:
            if not self.options.skip_damaged:
                assert path is not None
                raise corrupt(path, position, what)
            _tell(path, position, f"{what}; skipped")

        return Decoder(
            to_arrow_schema(self.schema, timezone="UTC"),
            constants,
            expected_records=expected,
            keep_control=self.options.include_control,
            skip=skip,
        )

    @staticmethod
    def _hide(batches: Batches, aborted: tuple[tuple[int, int, int], ...]) -> None:
        """An aborted batch becomes one without records."""
        for producer, first, last in aborted:
            inside = (batches.base_offsets >= first) & (batches.base_offsets <= last)
            inside &= (batches.producer_ids == producer) & ((batches.attributes & 0x20) == 0)
            batches.counts = np.where(inside, 0, batches.counts)


def _tell(path: Path | None, position: int, what: str) -> None:
    print(f"tidelog: {path}: byte {position}: {what}", file=sys.stderr)
