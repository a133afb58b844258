"""The snapshots in the directory of the metadata log: finding, reading, adding and deleting them."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.errors import CorruptionError
from tidelog.outbox import Outbox
from tidelog.quorum import snapshot
from tidelog.quorum.snapshot import SnapshotId
from tidelog.storage import File, Storage

HEAD_BYTES = 1 << 20


class SnapshotFiles:
    """What is listed here is complete and durable."""

    def __init__(self, outbox: Outbox, storage: Storage, directory: str, on_failed: Callable[[str], None]) -> None:
        self._outbox = outbox
        self._storage = storage
        self._directory = directory
        self._on_failed = on_failed
        self._parts = 0
        self.ids: list[SnapshotId] = []
        """Oldest first."""

    @property
    def latest(self) -> SnapshotId | None:
        """The newest one."""
        return self.ids[-1] if self.ids else None

    def recover(self, log_start_offset: int) -> None:
        """List what is there; delete what is half written, damaged, or ends before the log begins."""
        for name in self._storage.list(self._directory):
            snapshot_id = SnapshotId.of_file_name(name)
            if snapshot_id is not None and snapshot_id.end_offset >= log_start_offset:
                self.ids.append(snapshot_id)
            elif snapshot_id is not None or snapshot.is_leftover(name):
                self._storage.delete(f"{self._directory}/{name}")
        self.ids.sort()
        while self.ids:
            try:
                self.read(self.ids[-1])
                return
            except CorruptionError as error:
                if self.ids[-1] == snapshot.BOOTSTRAP:
                    raise  # who votes is known from nowhere else
                self._outbox.tell("quorum-snapshot-damaged", "error", snapshot=str(self.ids[-1]), reason=str(error))
                self._delete(self.ids[-1])

    def open(self, snapshot_id: SnapshotId) -> File | None:
        """The file of a snapshot, or None when there is no such snapshot."""
        return self._storage.open(self._path(snapshot_id)) if snapshot_id in self.ids else None

    def read(self, snapshot_id: SnapshotId) -> snapshot.Snapshot:
        """All of a snapshot; CorruptionError when it is damaged."""
        return snapshot.read(self._storage.read_file(self._path(snapshot_id)), self._path(snapshot_id))

    def timestamp_ms(self, snapshot_id: SnapshotId) -> int:
        """When the last record that a snapshot covers was appended."""
        file = self._storage.open(self._path(snapshot_id))
        head = file.read(0, HEAD_BYTES)
        file.close()
        return snapshot.read_timestamp_ms(head)

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(self._storage.size(self._path(snapshot_id)) for snapshot_id in self.ids)

    def create_part(self, snapshot_id: SnapshotId) -> File:
        """A new file to write a snapshot into; a start deletes it unless it was installed."""
        self._parts += 1
        stem, suffix = snapshot_id.file_name.split(".")
        return self._storage.open(f"{self._directory}/{stem}-{self._parts}.{suffix}.part", create=True)

    def install(self, part: File, snapshot_id: SnapshotId, then: Callable[[], None]) -> None:
        """Make a written file durable under its name, then list it and continue."""

        def named(error: str | None) -> None:
            if error is not None:
                self._on_failed(f"snapshot {snapshot_id} cannot be flushed: {error}")
                return
            if snapshot_id not in self.ids:
                self.ids = sorted([*self.ids, snapshot_id])
            then()

        def written(error: str | None) -> None:
            if error is not None:
                self._on_failed(f"snapshot {snapshot_id} cannot be flushed: {error}")
                return
            self._storage.rename(part.path, self._path(snapshot_id))
            part.close()
            self._outbox.flush(self._storage, named, directories=[self._directory])

        self._outbox.flush(self._storage, written, files=[part])

    def forget_before(self, snapshot_id: SnapshotId) -> None:
        """Delete those that are older."""
        for old in [each for each in self.ids if each < snapshot_id]:
            self._delete(old)

    def _delete(self, snapshot_id: SnapshotId) -> None:
        self._storage.delete(self._path(snapshot_id))
        self.ids.remove(snapshot_id)

    def _path(self, snapshot_id: SnapshotId) -> str:
        return f"{self._directory}/{snapshot_id.file_name}"
