"""A disk in memory that does to a log directory what real disks do to it: it forgets, tears, rots, fills up and fails.

It is a `tidelog.storage.Storage`. What a program wrote is in the page cache and survives `kill`. Of what was never
flushed `power_loss` keeps all, nothing or a torn part, drawn from a `Chance`:

    bytes of a file         the content of its last flush, all that was written, or the new bytes up to a drawn one,
                            sometimes followed by zeros (the size reached the medium, the data did not)
    a small file replaced   old, new or empty
    entries of a directory  creates, renames and deletes are undone from a drawn one on, newest first, until the
                            directory itself was flushed; flushing a file does not flush its name

Nothing here draws chance, reads a clock or waits except where the caller hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.effects import Flush
from tidelog.errors import StorageError
from tidelog.outbox import Chance
from tidelog.sim.medium import Change, Directory, Inode, Node
from tidelog.storage import File

NO_SPACE = "no space left on device"
IO_ERROR = "input/output error"
TOTAL_BYTES = 1 << 40
"""What `usage` says of a disk without a capacity."""


class PowerCut(BaseException):
    """The power went at the write a test asked for. Not an Exception: no handler of the core may survive it."""


class _Fault:
    __slots__ = ("operation", "path_prefix", "reason", "times")

    def __init__(self, operation: str, path_prefix: str, reason: str, times: int | None) -> None:
        self.operation = operation
        self.path_prefix = path_prefix
        self.reason = reason
        self.times = times


class SimulatedFile:
    """A handle on a file of a `SimulatedDisk`; it dies with the process that opened it."""

    __slots__ = ("_disk", "_incarnation", "_inode", "_open")

    def __init__(self, disk: SimulatedDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._incarnation = disk.incarnation
        self._open = True

    @property
    def path(self) -> str:
        """Where the file is now; where it was last when it is deleted."""
        return self._inode.path

    @property
    def size(self) -> int:
        """Bytes in the page cache."""
        return len(self._inode.data)

    @property
    def generation(self) -> int:
        """As the contract says; -1 once the handle is dead, so that no slice of it is valid."""
        return self._inode.generation if self._incarnation == self._disk.incarnation else -1

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write at the end, into the page cache."""
        inode = self._live("append", writing=True)
        disk = self._disk
        if inode.parent is not None:
            disk.take_space(len(data), inode)
        inode.data += data
        inode.modified_ms = disk.now_ms
        disk.wrote("append", inode)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes of the page cache."""
        if position < 0 or length < 0:
            raise ValueError(f"read of {length} bytes at {position}")
        return bytes(self._live("read").data[position : position + length])

    def truncate(self, size: int) -> None:
        """Cut the file; a power loss may undo it until the next flush."""
        inode = self._live("truncate", writing=True)
        if not 0 <= size <= len(inode.data):
            raise ValueError(f"{inode.path} has {len(inode.data)} bytes and cannot be cut to {size}")
        if inode.parent is not None:
            self._disk.give_space(len(inode.data) - size)
        inode.truncate(size)
        inode.modified_ms = self._disk.now_ms
        self._disk.wrote("truncate", inode)

    def close(self) -> None:
        """Refuse further writes; reading goes on, for slices."""
        self._open = False

    def flush(self, size: int, generation: int) -> None:
        """Make the first `size` bytes durable, as they were when the file had that generation."""
        self._live("flush").flush(size if generation == self.generation else None)
        self._disk.wrote("flush", self._inode)

    def _live(self, operation: str, writing: bool = False) -> Inode:
        if self._incarnation != self._disk.incarnation:
            raise RuntimeError(f"{self._inode.path}: a handle from before the last kill or power loss was used")
        if writing and not self._open:
            raise ValueError(f"{self._inode.path} is closed")
        if self._disk.is_troubled:
            self._disk.check(operation, self._inode.path)
        return self._inode


class SimulatedFlush:
    """A Flush under way. Directories are those its paths meant when it was taken in, as open descriptors would be."""

    def __init__(self, disk: SimulatedDisk, effect: Flush) -> None:
        self._disk = disk
        self._error: str | None = None
        self._files: list[tuple[SimulatedFile, int, int]] = []
        self._replacements: list[tuple[Directory, str, bytes]] = []
        self._directories: list[Directory] = []
        for file in effect.files:
            if not isinstance(file, SimulatedFile):
                raise TypeError(f"{file!r} is not a file of a simulated disk")
            self._files.append((file, file.size, file.generation))
        try:
            for path, data in effect.replacements:
                directory, _, name = path.rpartition("/")
                self._replacements.append((disk.directory(directory), name, data))
            self._directories += [disk.directory(path) for path in effect.directories]
        except (StorageError, FileNotFoundError) as error:
            self._error = f"log directory {disk.root}: no such directory: {error}"

    def finish(self) -> str | None:
        """Do it; the disk's complaint, or None. What came before a complaint is durable."""
        if self._error is not None:
            return self._error
        try:
            for file, size, generation in self._files:
                file.flush(size, generation)
            for directory, name, data in self._replacements:
                if directory.parent is None and directory.path:
                    raise StorageError(self._disk.root, f"{directory.path}/{name}", "no such file or directory")
                self._disk.put_file(directory, name, data, durable=True)
                self._disk.flush_directory(directory)
            for directory in self._directories:
                self._disk.flush_directory(directory)
        except StorageError as error:
            return str(error)
        return None


class SimulatedDisk:
    """One log directory in memory; see the module. `now_ms` is set by whoever owns the simulated time."""

    def __init__(self, root: str = "disk", capacity_bytes: int | None = None) -> None:
        self.root = root
        self.now_ms = 0
        self.capacity_bytes = capacity_bytes
        """Appends and replacements beyond it fail; may be changed at any time."""
        self.used_bytes = 0
        self.writes = 0
        """Writes so far: appends, cuts, changes of names, and each part of a flush."""
        self.on_write: Callable[[int, str], None] | None = None
        """Called after each write with its number and what it was; it may raise PowerCut."""
        self.cut_power_at_write: int | None = None
        """PowerCut is raised after this write and by everything from then until `power_loss`."""
        self.delay_ms = 0
        """How much longer flushes take on it."""
        self.losses = 0
        """How often it lost its power."""
        self.incarnation = 0
        self.is_looked_at = False
        """Whoever looks on meets no faults: they are for the node."""
        self._root = Directory("", None, 0)
        self._root.last_path = ""
        self._changes: list[Change] = []
        """Changes of names that no flush of their directory has confirmed, oldest first."""
        self._faults: list[_Fault] = []
        self._dead = False

    # --- Storage ---

    def open(self, path: str, *, create: bool = False) -> File:
        """A new handle; the name of a file it creates is not durable before its directory is flushed."""
        self.check("open", path)
        node = self._find(path)
        if node is None and create:
            parent, name = self._place(path)
            node = Inode(name, parent, self.now_ms)
            self._change(f"create {path}", (parent,), [(parent, name, node)])
        return SimulatedFile(self, self._file(path, node))

    def read_file(self, path: str) -> bytes:
        """The whole of a file."""
        self.check("read", path)
        return bytes(self._file(path, self._find(path)).data)

    def replace(self, path: str, data: bytes) -> None:
        """Old, new or empty after a power loss."""
        self.put_file(*self._place(path), data, durable=False)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""
        self.check("list", path)
        return self._find(path) is not None

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        self.check("list", path)
        return sorted(self.directory(path).entries)

    def size(self, path: str) -> int:
        """Bytes in a file."""
        self.check("list", path)
        return len(self._file(path, self._find(path)).data)

    def modified_ms(self, path: str) -> int:
        """When it was last written, by `now_ms`."""
        self.check("list", path)
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(path)
        return node.modified_ms

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; each name is durable when its own parent is flushed."""
        self.check("make_directory", path)
        directory = self._root
        for name in path.split("/") if path else ():
            node = directory.entries.get(name)
            if node is None:
                node = Directory(name, directory, self.now_ms)
                self._change(f"make directory {node.path}", (directory,), [(directory, name, node)])
            elif not isinstance(node, Directory):
                raise StorageError(self.root, path, "not a directory")
            directory = node

    def rename(self, source: str, target: str) -> None:
        """Atomic for programs; a power loss may undo it until both directories are flushed."""
        self.check("rename", source)
        node = self._find(source)
        if node is None or node.parent is None:
            raise FileNotFoundError(source)
        parent, name = self._place(target)
        there = parent.entries.get(name)
        if there is node:
            return
        if there is not None and (isinstance(there, Directory) or isinstance(node, Directory)):
            raise StorageError(self.root, target, "already exists")
        directories = (node.parent,) if node.parent is parent else (node.parent, parent)
        self._change(
            f"rename {source} to {target}", directories, [(node.parent, node.name, None), (parent, name, node)]
        )

    def delete(self, path: str) -> None:
        """Remove file by file, so that a power loss may leave half a directory."""
        self.check("delete", path)
        node = self._find(path)
        if node is not None:
            self._delete(node)

    def usage(self) -> tuple[int, int]:
        """Capacity and what is left of it."""
        total = TOTAL_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return total, max(0, total - self.used_bytes)

    # --- what the simulated runtime does ---

    def start_flush(self, effect: Flush) -> SimulatedFlush:
        """Take a Flush in; until `finish` nothing is promised, and what is appended meanwhile is not part of it."""
        return SimulatedFlush(self, effect)

    def apply_flush(self, effect: Flush) -> str | None:
        """Carry out a Flush of this disk at once; the disk's complaint, or None."""
        return self.start_flush(effect).finish()

    def flush_directory(self, directory: Directory) -> None:
        """Make the names in a directory durable, with whatever a journal has to write before them."""
        self.check("flush", directory.path)
        needed = {directory}
        confirmed: list[Change] = []
        kept: list[Change] = []
        for change in reversed(self._changes):
            if needed.isdisjoint(change.directories):
                kept.append(change)
            else:
                needed.update(change.directories)
                confirmed.append(change)
        self._changes = kept[::-1]
        for change in reversed(confirmed):
            change.apply()
        self.wrote("flush directory", directory)

    # --- faults ---

    def kill(self) -> None:
        """The process dies: handles are dead, every byte and name it wrote is still there."""
        self.incarnation += 1
        self._dead = False

    def power_loss(self, chance: Chance) -> None:
        """The machine dies: handles are dead, and of what was not flushed chance decides what is still there."""
        self.kill()
        self.losses += 1
        self.cut_power_at_write = None
        pending: dict[Directory, int] = {}
        for change in self._changes:
            for directory in change.directories:
                pending[directory] = pending.get(directory, 0) + 1
        survivors = {directory: chance.below(count + 1) for directory, count in pending.items()}
        for change in self._changes:
            if all(survivors[directory] > 0 for directory in change.directories):
                change.apply()
                for directory in change.directories:
                    survivors[directory] -= 1
            else:
                for directory in change.directories:
                    survivors[directory] = 0
        self._changes = []
        self.used_bytes = 0
        self._restore(self._root, chance)

    def flushed_files(self, path: str) -> Sequence[tuple[str, int]]:
        """The files in a directory, with how many bytes of each are on the medium; none when there is no directory."""
        node = self._find(path)
        if not isinstance(node, Directory):
            return []
        files = [(name, one) for name, one in sorted(node.entries.items()) if isinstance(one, Inode)]
        return [(f"{path}/{name}", one.durable_size) for name, one in files]

    def durable_file(self, path: str) -> bytes | None:
        """What the medium has of a file, whatever programs see; None when it has no such file."""
        node: Node | None = self._root
        for name in path.split("/"):
            node = node.durable.get(name) if isinstance(node, Directory) else None
        return bytes(node.data[: node.durable_size]) + node.cut_tail if isinstance(node, Inode) else None

    def look_at(self, path: str) -> bytes:
        """A file, for whoever is no program of the machine: it meets no faults."""
        return bytes(self._file(path, self._find(path)).data)

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Bit rot: turn one bit of a stored byte around, behind everybody's back."""
        self._file(path, self._find(path)).data[position] ^= 1 << bit

    def fail(
        self, operation: str = "", *, path_prefix: str = "", reason: str = IO_ERROR, times: int | None = None
    ) -> None:
        """Fail an operation ("" is every one) below a path, `times` times or until `heal`.

        Operations: open, append, read, truncate, flush, replace, list, make_directory, rename, delete.
        """
        self._faults.append(_Fault(operation, path_prefix, reason, times))

    def heal(self) -> None:
        """End every fault set by `fail`."""
        self._faults.clear()

    # --- what the handles call ---

    def check(self, operation: str, path: str) -> None:
        """Raise what this operation must meet: no power, or a fault."""
        if self._dead:
            raise PowerCut
        for fault in self._faults if not self.is_looked_at else ():
            if fault.operation in ("", operation) and path.startswith(fault.path_prefix) and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                raise StorageError(self.root, path, fault.reason)

    def take_space(self, size_bytes: int, place: Node) -> None:
        """Reserve room for bytes about to be written, or raise with nothing written."""
        if self.capacity_bytes is not None and self.used_bytes + size_bytes > self.capacity_bytes:
            raise StorageError(self.root, place.path, NO_SPACE)
        self.used_bytes += size_bytes

    def give_space(self, size_bytes: int) -> None:
        """Give room back."""
        self.used_bytes -= size_bytes

    @property
    def is_troubled(self) -> bool:
        """Whether operations may meet something: no power, or a fault."""
        return self._dead or bool(self._faults)

    def wrote(self, what: str, place: Node | None = None) -> None:
        """Count a write that was done, and let the power go if this is where it should."""
        self.writes += 1
        if self.on_write is None and self.cut_power_at_write is None:
            return
        what = what if place is None else f"{what} {place.path}"
        if self.on_write is not None:
            self.on_write(self.writes, what)
        if self.cut_power_at_write is not None and self.writes >= self.cut_power_at_write:
            self._dead = True
            raise PowerCut(what)

    # --- names ---

    def _find(self, path: str) -> Node | None:
        node: Node = self._root
        for name in path.split("/") if path else ():
            if not isinstance(node, Directory):
                return None
            below = node.entries.get(name)
            if below is None:
                return None
            node = below
        return node

    def _file(self, path: str, node: Node | None) -> Inode:
        if node is None:
            raise FileNotFoundError(path)
        if not isinstance(node, Inode):
            raise StorageError(self.root, path, "is a directory")
        return node

    def directory(self, path: str) -> Directory:
        """The directory at a path."""
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(path)
        if not isinstance(node, Directory):
            raise StorageError(self.root, path, "not a directory")
        return node

    def _place(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            raise ValueError(f"{path!r} names no file")
        return self.directory(above), name

    def put_file(self, parent: Directory, name: str, data: bytes, *, durable: bool) -> None:
        """Put a whole new file under a name; `durable` is about its bytes, not its name."""
        path = f"{parent.path}/{name}" if parent.path else name
        self.check("replace", path)
        if isinstance(parent.entries.get(name), Directory):
            raise StorageError(self.root, path, "is a directory")
        inode = Inode(name, parent, self.now_ms)
        self.take_space(len(data), inode)
        inode.data += data
        inode.whole = True
        if durable:
            inode.flush()
        self._change(f"replace {path}", (parent,), [(parent, name, inode)])

    def _delete(self, node: Node) -> None:
        directories: tuple[Directory, ...] = ()
        if isinstance(node, Directory):
            for name in sorted(node.entries):
                self._delete(node.entries[name])
            directories = (node,)
        if node.parent is not None:
            self._change(f"delete {node.path}", (node.parent, *directories), [(node.parent, node.name, None)])

    def _change(
        self, what: str, directories: tuple[Directory, ...], names: Sequence[tuple[Directory, str, Node | None]]
    ) -> None:
        self._changes.append(Change(directories, names))
        arriving = {node for _, _, node in names if node is not None}
        for directory, name, node in names:
            left = directory.entries.pop(name, None)
            if left is not None and left not in arriving:
                left.last_path, left.parent = left.path, None
                if isinstance(left, Inode):
                    self.give_space(len(left.data))
            if node is not None:
                directory.entries[name] = node
                node.name, node.parent = name, directory
            directory.modified_ms = self.now_ms
        self.wrote(what)

    def _restore(self, directory: Directory, chance: Chance) -> None:
        directory.entries = dict(sorted(directory.durable.items()))
        for name, node in directory.entries.items():
            node.name, node.parent = name, directory
            if isinstance(node, Directory):
                self._restore(node, chance)
            elif isinstance(node, Inode):
                node.lose_power(chance)
                self.used_bytes += len(node.data)
