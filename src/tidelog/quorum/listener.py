"""What the quorum tells the controller and the broker of its node."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidelog.wire.message import Message


class CommittedBatch(NamedTuple):
    """A committed batch of the metadata log. A batch of the quorum's own control records has no `records`."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    records: list[Message]
    size_bytes: int
    """What it takes in the log."""


class LoadedSnapshot(NamedTuple):
    """Everything up to and without `end_offset`, in place of all that was told before."""

    end_offset: int
    epoch: int
    timestamp_ms: int
    """When the last record that the snapshot covers was appended."""
    records: list[Message]


class Listener(Protocol):
    """Told in the order of the log, each offset once, from the first snapshot or record on."""

    def on_committed(self, batch: CommittedBatch) -> None:
        """These records are committed and will never be taken back."""

    def on_snapshot_loaded(self, snapshot: LoadedSnapshot) -> None:
        """Forget all records so far and begin from these."""

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """The leader this replica knows of is now another, or none, in this epoch."""

    def on_activated(self, epoch: int) -> None:
        """This replica leads and has committed a record of its own epoch: all there is was told, it may serve."""

    def on_resigned(self) -> None:
        """This replica leads no longer; what it appended and was not told is committed may be lost."""
