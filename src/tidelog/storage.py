"""The narrow door between the core and a disk: one `Storage` is one log directory.

The core calls it directly for everything that does not wait for the medium. Waiting (flushing a file or a directory)
is an effect, see `tidelog.effects.Flush`. Two runtimes implement it, real files and a simulated disk, and both pass
the same contract test.

What survives what:
    a kill         everything that returned: appended bytes, renames, replaced files
    a power loss   what a finished Flush named; the rest may be there, be gone or be torn
"""

from __future__ import annotations

from typing import Protocol


class File(Protocol):
    """One open append-only file."""

    @property
    def path(self) -> str:
        """Relative to the storage's root, with forward slashes; follows renames of the file and of its directory."""

    @property
    def size(self) -> int:
        """Bytes in the file, those appended and not yet flushed included."""

    @property
    def generation(self) -> int:
        """Raised by every truncate, so that a slice taken before is known to be cut."""

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at the end, or raise StorageError with the file cut back to where it was."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes and raise the generation. Not durable before a Flush."""

    def close(self) -> None:
        """Give the handle back; safe to call twice. Slices already taken stay readable until they are released."""


class Storage(Protocol):
    """One log directory. Paths are relative to it. Every method raises StorageError when the disk fails."""

    root: str
    """What people call it: the configured path."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; without `create` a missing file is a FileNotFoundError."""

    def read_file(self, path: str) -> bytes:
        """The whole of a small file; FileNotFoundError when it is missing."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file whole, by a temporary file and a rename: a kill leaves the old or the new one.

        After a power loss without a Flush it may be the old one, the new one or empty: readers treat an unreadable
        checkpoint as absent. What must be durable goes through Flush.replacements instead.
        """

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; "" is the root. FileNotFoundError when there is no such directory."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; no error when it is there."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory, replacing a file of that name."""

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory; no error when it is missing."""

    def usage(self) -> tuple[int, int]:
        """Total and usable bytes of the volume."""


class Slice:
    """Bytes of a file that are to be sent, not read: what a Fetch answer carries.

    It pins its open file. `valid` turns false when the file was truncated after the slice was taken; whoever sends it
    checks before each send and closes the connection when the bytes it promised were cut.
    """

    __slots__ = ("file", "generation", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.generation = file.generation

    @property
    def valid(self) -> bool:
        """Whether the bytes are still those that were promised."""
        return self.generation == self.file.generation

    def read(self) -> bytes:
        """Read the whole slice; for small ones, the client tools and the simulator."""
        return self.file.read(self.position, self.length)

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"Slice({self.file.path}@{self.position}+{self.length})"
