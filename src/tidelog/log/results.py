"""What a log answers."""

from __future__ import annotations

from tidelog.errors import TidelogError
from tidelog.storage import Slice


class Appended:
    """What became of an append."""

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time_ms", "max_timestamp", "size")

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        max_timestamp: int,
        size: int,
        duplicate: bool = False,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        """What the records' times were set to; -1 when they kept their own."""
        self.max_timestamp = max_timestamp
        self.size = size
        """Bytes written; 0 for a repeat."""
        self.duplicate = duplicate
        """The batch was in the log already, at these offsets: nothing was written (KIP-98)."""

    def __repr__(self) -> str:
        return f"Appended({self.first_offset}..{self.last_offset}{', duplicate' if self.duplicate else ''})"


class LogRead:
    """Whole batches, as slices of the segments they are in."""

    __slots__ = ("first_offset", "next_offset", "parts", "size")

    def __init__(self, parts: list[Slice], first_offset: int, next_offset: int, size: int) -> None:
        self.parts = parts
        self.first_offset = first_offset
        """Of the first batch, which may begin before the offset that was asked for."""
        self.next_offset = next_offset
        """Where to read on."""
        self.size = size

    def __repr__(self) -> str:
        return f"LogRead({self.first_offset}..{self.next_offset}, {self.size} bytes)"


class UnexpectedOffset(TidelogError):
    """A follower got batches that begin before the end of its log.

    Happens where a leader's log starts in the middle of a batch (DeleteRecords) and the follower has nothing yet: it
    then starts its log at `first_offset`.
    """

    def __init__(self, path: str, first_offset: int, log_end_offset: int) -> None:
        super().__init__(f"{path}: got a batch at offset {first_offset}, the log ends at {log_end_offset}")
        self.first_offset = first_offset
        self.log_end_offset = log_end_offset
