"""What of a log is not yet durable, and what a flush under way will have made so.

Flushing is an effect: `begin` says what to flush, and some steps later `finish` is told that it is done. What was cut
in between was not made durable by it, whatever stands at those offsets now.
"""

from __future__ import annotations

from tidelog.log import names
from tidelog.log.segment import Segment
from tidelog.storage import File, Storage


class _Underway:
    """A flush that was asked for."""

    __slots__ = ("changes", "end_offset", "files", "sealed", "valid_end_offset")

    def __init__(self, end_offset: int, changes: int, files: list[File], sealed: dict[Segment, int]) -> None:
        self.end_offset = end_offset
        self.valid_end_offset = end_offset
        """Lowered by every cut since."""
        self.changes = changes
        self.files = files
        """Opened for this flush alone."""
        self.sealed = sealed


class FlushState:
    """Of one log: the recovery point, and what waits above and beside it."""

    __slots__ = (
        "_changes",
        "_changes_flushed",
        "_is_new",
        "_sealed",
        "_small_files",
        "_underway",
        "directory",
        "recovery_point",
        "storage",
    )

    def __init__(self, storage: Storage, directory: str, recovery_point: int, *, is_new: bool) -> None:
        self.storage = storage
        self.directory = directory
        self.recovery_point = recovery_point
        """Everything below is durable, except that rename and delete of whole files may be undone by a power loss."""
        self._is_new = is_new
        """The directory itself may have just been made: its own name is not durable either."""
        self._sealed: dict[Segment, int] = {}
        """Segments with index files, and perhaps batches, that no flush has confirmed since they were completed.
        A segment may be cut, written to and completed again while a flush is under way; the number tells."""
        self._small_files: dict[str, None] = {}
        self._changes = 0
        """Counts files made, renamed and deleted in the directory."""
        self._changes_flushed = 0
        self._underway: list[_Underway] = []

    @property
    def has_sealed_segments(self) -> bool:
        """Whether a completed segment waits for its flush."""
        return bool(self._sealed)

    def directory_changed(self) -> None:
        """A file was made, renamed or deleted."""
        self._changes += 1

    def directory_recovered(self) -> None:
        """After an unclean stop nobody knows which names are durable, the directory's own included."""
        self._changes += 1
        self._is_new = True

    def wrote_small_file(self, path: str) -> None:
        """A checkpoint or a snapshot was replaced."""
        self._small_files[path] = None
        self._changes += 1

    def sealed(self, segment: Segment) -> None:
        """A segment's indexes are complete."""
        self._changes += 1
        self._sealed[segment] = self._changes

    def removed(self, segment: Segment) -> None:
        """A segment is gone, or is being appended to again."""
        self._sealed.pop(segment, None)

    def cut(self, end_offset: int) -> None:
        """The log was cut: flushes under way did not make durable what will be appended here."""
        self.recovery_point = min(self.recovery_point, end_offset)
        for underway in self._underway:
            underway.valid_end_offset = min(underway.valid_end_offset, end_offset)

    def begin(self, unflushed: list[Segment], end_offset: int) -> tuple[list[File], list[str]]:
        """Files and directories to flush so that everything up to `end_offset` is durable.

        `unflushed` are the segments from the recovery point on. The indexes of the active one are left out: after a
        power loss they are made anew.
        """
        files = [segment.file for segment in {**dict.fromkeys(self._sealed), **dict.fromkeys(unflushed)}]
        opened: list[File] = []
        for segment in self._sealed:
            suffixes = [names.OFFSET_INDEX_SUFFIX, names.TIME_INDEX_SUFFIX]
            if segment.txn_index.exists:
                suffixes.append(names.TXN_INDEX_SUFFIX)
            opened += [self.storage.open(segment.path(suffix), create=True) for suffix in suffixes]
        opened += [self.storage.open(path) for path in self._small_files if self.storage.exists(path)]
        self._small_files.clear()
        directories = [self.directory] if self._changes != self._changes_flushed else []
        if self._is_new:
            directories.append(self.directory.rpartition("/")[0])
        self._underway.append(_Underway(end_offset, self._changes, opened, dict(self._sealed)))
        return files + opened, directories

    def finish(self, offset: int) -> None:
        """The oldest flush that reached `offset` is done."""
        underway = next((one for one in self._underway if one.end_offset >= offset), None)
        if underway is None:
            raise ValueError(f"{self.directory}: no flush up to offset {offset} was asked for")
        self._underway.remove(underway)
        self.recovery_point = max(self.recovery_point, min(offset, underway.valid_end_offset))
        self._changes_flushed = max(self._changes_flushed, underway.changes)
        self._is_new = False
        for file in underway.files:
            file.close()
        for segment, number in underway.sealed.items():
            if self._sealed.get(segment) == number:
                del self._sealed[segment]
