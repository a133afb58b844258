"""What a simulated disk is made of: files and directories as programs see them, and as they are on the medium."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.outbox import Chance


class Node:
    """What files and directories share: a name in a parent."""

    __slots__ = ("last_path", "modified_ms", "name", "parent")

    def __init__(self, name: str, parent: Directory | None, modified_ms: int) -> None:
        self.name = name
        self.parent = parent
        self.last_path = name
        self.modified_ms = modified_ms

    @property
    def path(self) -> str:
        """From the root down; the last one it had when it is unlinked."""
        if self.parent is None:
            return self.last_path
        above = self.parent.path
        return f"{above}/{self.name}" if above else self.name


class Inode(Node):
    """One file. On the medium is `data[:durable_size] + cut_tail`."""

    __slots__ = ("cut_tail", "data", "durable_size", "generation", "whole")

    def __init__(self, name: str, parent: Directory | None, modified_ms: int) -> None:
        super().__init__(name, parent, modified_ms)
        self.data = bytearray()
        self.generation = 0
        self.durable_size = 0
        self.cut_tail = b""
        """Durable bytes that a truncation removed and no flush has confirmed."""
        self.whole = False
        """Written by `replace`: after a power loss it is there whole or empty, never torn."""

    def truncate(self, size: int) -> None:
        """Cut what programs see, remembering what the medium still has."""
        if size < self.durable_size:
            self.cut_tail = bytes(self.data[size : self.durable_size]) + self.cut_tail
            self.durable_size = size
        del self.data[size:]
        self.generation += 1

    def flush(self, size: int | None = None) -> None:
        """The medium now has what programs see, or the first `size` bytes of it."""
        self.durable_size = len(self.data) if size is None else max(self.durable_size, size)
        self.cut_tail = b""

    def lose_power(self, chance: Chance) -> None:
        """Become what the medium has, with what chance wrote back before the power went."""
        unflushed = bytes(self.data[self.durable_size :])
        if unflushed or self.cut_tail:
            outcome = chance.below(2 if self.whole else 4)
            if outcome == 0:
                self.data[self.durable_size :] = self.cut_tail
            elif outcome >= 2:
                kept = chance.below(len(unflushed) + 1)
                zeros = chance.below(len(unflushed) - kept + 1) if outcome == 3 else 0
                self.data[self.durable_size :] = unflushed[:kept] + bytes(zeros)
        self.generation = 0
        self.flush()


class Directory(Node):
    """One directory: its names as programs see them, and as they are on the medium."""

    __slots__ = ("durable", "entries")

    def __init__(self, name: str, parent: Directory | None, modified_ms: int) -> None:
        super().__init__(name, parent, modified_ms)
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


class Change:
    """One change of names, all or nothing even across directories, as a journal makes it."""

    __slots__ = ("directories", "names")

    def __init__(self, directories: tuple[Directory, ...], names: Sequence[tuple[Directory, str, Node | None]]) -> None:
        self.directories = directories
        """It reaches the medium only after every earlier change of these."""
        self.names = names

    def apply(self) -> None:
        """Write it to the medium."""
        for directory, name, node in self.names:
            if node is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = node
