"""Which leader epoch wrote which offsets (KIP-101): the history that decides where two replicas part.

An epoch starts at the offset of its first batch and ends where the next one starts. Kept in
`leader-epoch-checkpoint`, lines `epoch start_offset`.
"""

from __future__ import annotations

from bisect import bisect_right

from tidelog.log import checkpoints
from tidelog.storage import Storage

UNDEFINED = -1


class EpochHistory:
    """The epochs of one log, oldest first."""

    __slots__ = ("_entries", "_epochs", "_start_offsets")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        """Invariant: this list and the next rise strictly, entry by entry."""
        self._start_offsets: list[int] = []
        self._entries: list[tuple[int, int]] | None = None

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 when there is none."""
        return self._epochs[-1] if self._epochs else UNDEFINED

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Epoch and start offset of each, oldest first; not to be changed."""
        if self._entries is None:
            self._entries = list(zip(self._epochs, self._start_offsets, strict=True))
        return self._entries

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Begin an epoch; False when the history already says so.

        What the new entry contradicts (a later or equal epoch, or one that starts at or after it) goes.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._start_offsets[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._start_offsets[-1] >= start_offset):
            self._pop()
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        self._entries = None
        return True

    def between(self, after_epoch: int, up_to_epoch: int, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """The entries of these epochs, the first left out, that start within these offsets, both of them counted."""
        return [
            (epoch, start)
            for epoch, start in self.entries
            if after_epoch < epoch <= up_to_epoch and start_offset <= start <= end_offset
        ]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch` and where it ends; (-1, -1) when nothing can be said.

        An epoch older than all known ones ends, as far as anybody can know, where the first known one starts.
        """
        if epoch == UNDEFINED or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED, UNDEFINED
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        next_up = bisect_right(self._epochs, epoch)
        found = self._epochs[next_up - 1] if next_up else epoch
        return found, self._start_offsets[next_up]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote an offset; -1 when it is before all known ones."""
        index = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that start at or after the log's new end; whether any did."""
        before = len(self._epochs)
        while self._start_offsets and self._start_offsets[-1] >= end_offset:
            self._pop()
        return len(self._epochs) != before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs that ended before the log's new start, and let the one in force there start there."""
        index = bisect_right(self._start_offsets, start_offset) - 1
        if index < 0 or (index == 0 and self._start_offsets[0] == start_offset):
            return False
        del self._epochs[:index], self._start_offsets[:index]
        self._start_offsets[0] = start_offset
        self._entries = None
        return True

    def clear(self) -> None:
        """Forget everything: the log starts anew."""
        self._epochs.clear()
        self._start_offsets.clear()
        self._entries = None

    def copy(self) -> EpochHistory:
        """The same history, to go back to when an append fails."""
        other = EpochHistory()
        other._epochs = self._epochs[:]
        other._start_offsets = self._start_offsets[:]
        return other

    def to_bytes(self) -> bytes:
        """The content of `leader-epoch-checkpoint`."""
        return checkpoints.lines_to_bytes(f"{epoch} {start}" for epoch, start in self.entries)

    @classmethod
    def read(cls, storage: Storage, path: str) -> EpochHistory | None:
        """The history in a checkpoint file; None when it is missing or garbled, so that it must be rebuilt."""
        lines = checkpoints.read_lines(storage, path)
        if lines is None:
            return None
        history = cls()
        try:
            for line in lines:
                epoch, start_offset = line.split(" ")
                history.assign(int(epoch), int(start_offset))
        except ValueError:
            return None
        return history

    def _pop(self) -> None:
        self._epochs.pop()
        self._start_offsets.pop()
        self._entries = None
