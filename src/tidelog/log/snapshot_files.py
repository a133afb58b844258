"""The producer snapshots in a log's directory: one where each segment begins, and one where a clean stop was made."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable

from tidelog.errors import CorruptionError
from tidelog.log import names, producer_snapshot
from tidelog.log.producer_state import Producer, ProducerState
from tidelog.storage import Storage


class SnapshotFiles:
    """The snapshots of one log, by the offset they were taken at."""

    __slots__ = ("_offsets", "directory", "storage")

    def __init__(self, storage: Storage, directory: str, offsets: Iterable[int]) -> None:
        self.storage = storage
        self.directory = directory
        self._offsets = sorted(offsets)

    @property
    def offsets(self) -> list[int]:
        """Where snapshots were taken, oldest first; not to be changed."""
        return self._offsets

    def path(self, offset: int) -> str:
        """Where the snapshot of an offset is."""
        return f"{self.directory}/{names.file_name(offset, names.SNAPSHOT_SUFFIX)}"

    def take(self, state: ProducerState) -> str | None:
        """Write what is known now, unless there is a snapshot of this offset; the path when one was written."""
        offset = state.end_offset
        if not offset or offset in self._offsets:
            return None
        path = self.path(offset)
        self.storage.replace(path, producer_snapshot.to_bytes(state.producers.values()))
        insort(self._offsets, offset)
        return path

    def load(self, up_to_offset: int) -> tuple[list[Producer], int] | None:
        """The newest readable snapshot taken at or before an offset, and its offset. Damaged ones are deleted."""
        for offset in reversed(self._offsets[: bisect_right(self._offsets, up_to_offset)]):
            try:
                return producer_snapshot.from_bytes(self.storage.read_file(self.path(offset))), offset
            except (CorruptionError, FileNotFoundError):
                self._delete(offset)
        return None

    def delete_above(self, offset: int) -> None:
        """Forget what was taken beyond the log's new end."""
        while self._offsets and self._offsets[-1] > offset:
            self._delete(self._offsets[-1])

    def delete_all(self) -> None:
        """Forget them all."""
        self.delete_above(-1)

    def delete_strays(self, base_offsets: Collection[int]) -> None:
        """Keep those at the start of a segment, and the newest of all, which a clean stop leaves."""
        for offset in self._offsets[:-1]:
            if offset not in base_offsets:
                self._delete(offset)

    def mark_deleted(self, below_offset: int) -> list[str]:
        """Rename those of deleted segments out of use and return their paths."""
        renamed = []
        while self._offsets and self._offsets[0] < below_offset:
            path = self.path(self._offsets.pop(0))
            if self.storage.exists(path):
                self.storage.rename(path, path + names.DELETED_SUFFIX)
                renamed.append(path + names.DELETED_SUFFIX)
        return renamed

    def mark_merged(self, base_offsets: Iterable[int]) -> list[str]:
        """Rename those of segments that compaction merged into the one before out of use and return their paths."""
        renamed = []
        for offset in base_offsets:
            if offset in self._offsets:
                self._offsets.remove(offset)
                path = self.path(offset)
                if self.storage.exists(path):
                    self.storage.rename(path, path + names.DELETED_SUFFIX)
                    renamed.append(path + names.DELETED_SUFFIX)
        return renamed

    def _delete(self, offset: int) -> None:
        self.storage.delete(self.path(offset))
        self._offsets.remove(offset)
