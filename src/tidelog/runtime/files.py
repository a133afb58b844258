"""Real files under one directory: the `tidelog.storage.Storage` of a running node.

Handles of the same file share one `_Stored`, so they agree on its size and generation. It lives as long as a handle or
a slice of it does, keeps its descriptor within the bound of `Descriptors`, and follows renames. All of it belongs to
the loop's thread; the flusher gets descriptors, never these objects.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import NoReturn

from tidelog.errors import DirectoryError, StorageError
from tidelog.runtime.descriptors import Descriptors
from tidelog.storage import File

LOCK_FILE = ".lock"
DEFAULT_MAX_OPEN_FILES = 512


class _Stored:
    """One file on disk with at least one living handle."""

    __slots__ = ("directory", "fd", "generation", "handles", "name", "pins", "recently_used", "size", "storage")

    def __init__(self, storage: DirectoryStorage, directory: str, name: str) -> None:
        self.storage = storage
        self.directory: str = directory
        self.name = name
        self.fd = -1
        self.size = 0
        self.generation = 0
        self.handles = 0
        self.pins = 0
        self.recently_used = False

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.name}" if self.directory else self.name

    def descriptor(self) -> int:
        if self.fd < 0:
            self.storage.reopen(self)
        self.recently_used = True
        return self.fd


class StoredFile:
    """A handle on a file of a `DirectoryStorage`."""

    __slots__ = ("_open", "_stored")

    def __init__(self, stored: _Stored) -> None:
        self._stored = stored
        self._open = True
        stored.handles += 1

    def __del__(self) -> None:
        stored = self._stored
        stored.handles -= 1
        if not stored.handles:
            stored.storage.forget(stored)

    @property
    def path(self) -> str:
        """Relative to the storage; where the file was last when it is deleted."""
        return self._stored.path

    @property
    def size(self) -> int:
        """Bytes appended so far."""
        return self._stored.size

    @property
    def generation(self) -> int:
        """How often the file was cut while open."""
        return self._stored.generation

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of it at the end; on failure the file is cut back and StorageError raised."""
        stored = self._stored
        if not self._open:
            raise ValueError(f"{stored.path} is closed")
        try:
            written = os.pwrite(stored.descriptor(), data, stored.size)
            if written != len(data):
                self._append_rest(memoryview(data), written)
        except OSError as error:
            self._undo_append()
            stored.storage.fail_open_file(stored.path, error)
        stored.size += len(data)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes."""
        stored = self._stored
        if position < 0 or length < 0:
            raise ValueError(f"read of {length} bytes at {position}")
        length = min(length, stored.size - position)
        if length <= 0:
            return b""
        try:
            data = os.pread(stored.descriptor(), length, position)
            while len(data) < length:
                more = os.pread(stored.descriptor(), length - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            stored.storage.fail_open_file(stored.path, error)
        return data

    def truncate(self, size: int) -> None:
        """Cut the file and make every slice of it invalid."""
        stored = self._stored
        if not self._open:
            raise ValueError(f"{stored.path} is closed")
        if not 0 <= size <= stored.size:
            raise ValueError(f"{stored.path} has {stored.size} bytes and cannot be cut to {size}")
        try:
            os.ftruncate(stored.descriptor(), size)
        except OSError as error:
            stored.storage.fail_open_file(stored.path, error)
        stored.size = size
        stored.generation += 1

    def close(self) -> None:
        """Refuse further writes. The descriptor goes with the last slice, or earlier where descriptors are short."""
        self._open = False

    def descriptor(self) -> int:
        """A descriptor to send from, good until the next call into any storage."""
        try:
            return self._stored.descriptor()
        except OSError as error:
            self._stored.storage.fail_open_file(self._stored.path, error)

    def pin(self) -> int:
        """A descriptor that stays open until `unpin`: for a helper thread."""
        fd = self.descriptor()
        self._stored.pins += 1
        return fd

    def unpin(self) -> None:
        """The helper thread is done with it."""
        self._stored.pins -= 1

    def _append_rest(self, data: memoryview, written: int) -> None:
        stored = self._stored
        while written < len(data):
            count = os.pwrite(stored.descriptor(), data[written:], stored.size + written)
            if not count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count

    def _undo_append(self) -> None:
        stored = self._stored
        try:
            if stored.fd >= 0 and os.fstat(stored.fd).st_size > stored.size:
                os.ftruncate(stored.fd, stored.size)
        except OSError:
            return  # what is behind `size` is never read, and cut as a torn tail when the log is opened again


class DirectoryStorage:
    """One log directory on a real disk."""

    def __init__(self, root: str, descriptors: Descriptors | None = None, *, create: bool = False) -> None:
        self.root = root
        self._descriptors = Descriptors(DEFAULT_MAX_OPEN_FILES) if descriptors is None else descriptors
        self._stored: dict[str, dict[str, _Stored]] = {}
        """By directory, then by name: a directory is renamed in one go."""
        self._lock_fd = -1
        self._made_lock_file = False
        self._not_locked = ""
        """Why it could not be locked: somebody else may be in it, so it is not used."""
        if create:
            try:
                os.makedirs(root, exist_ok=True)
            except OSError as error:
                raise DirectoryError(f"{root}: {_reason(error)}") from None

    # --- one process at a time ---

    def lock(self) -> None:
        """Keep other processes out, Apache Kafka's included; DirectoryError when one is in, with nothing changed.

        Two locks on one file: Java's is a POSIX lock, which does not keep out a second user within one process. Where
        the disk does not let it be locked, that is a StorageError, and so is all that is tried after it.
        """
        path = self.absolute(LOCK_FILE)
        existed = os.path.exists(path)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DirectoryError(f"{self.root}: {_reason(error)}") from None
        except OSError as error:
            self._not_locked = _reason(error)
            raise StorageError(self.root, LOCK_FILE, self._not_locked) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise DirectoryError(f"{self.root}: in use by another process") from None
            self._not_locked = f"cannot be locked: {_reason(error)}"
            raise StorageError(self.root, LOCK_FILE, self._not_locked) from None
        self._lock_fd = fd
        self._made_lock_file = not existed

    def close(self, *, untouched: bool = False) -> None:
        """Close every file and let others in; `untouched` also takes back a lock file that was made here."""
        for directory in list(self._stored.values()):
            for stored in list(directory.values()):
                self._descriptors.close(stored)
        if self._lock_fd >= 0:
            if untouched and self._made_lock_file:
                os.unlink(self.absolute(LOCK_FILE))
            os.close(self._lock_fd)
            self._lock_fd = -1

    # --- Storage ---

    def open(self, path: str, *, create: bool = False) -> File:
        """A new handle on a file."""
        directory, name = _split(path)
        there = self._stored.get(directory, {}).get(name)
        if there is not None:
            return StoredFile(there)
        stored = _Stored(self, directory, name)
        try:
            fd = self._descriptors.open(stored, self.absolute(path), os.O_RDWR | (os.O_CREAT if create else 0))
            stored.size = os.fstat(fd).st_size
        except OSError as error:
            self._descriptors.close(stored)
            self.fail(path, error)
        self._stored.setdefault(directory, {})[name] = stored
        return StoredFile(stored)

    def read_file(self, path: str) -> bytes:
        """The whole of a small file."""
        try:
            with open(self.absolute(path), "rb", buffering=0) as file:
                return file.read()
        except OSError as error:
            self.fail(path, error)

    def replace(self, path: str, data: bytes) -> None:
        """By a temporary file and a rename, without waiting for the disk."""
        absolute = self.absolute(path)
        temporary = absolute + ".tmp"
        self.detach(path)
        try:
            write_whole(temporary, data)
            os.rename(temporary, absolute)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            self.fail(path, error)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""
        try:
            os.stat(self.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            self.fail(path, error)
        return True

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        try:
            return sorted(os.listdir(self.absolute(path)))
        except OSError as error:
            self.fail(path, error)

    def size(self, path: str) -> int:
        """Bytes in a file."""
        try:
            return os.stat(self.absolute(path)).st_size
        except OSError as error:
            self.fail(path, error)

    def modified_ms(self, path: str) -> int:
        """When it was last written, by the wall clock."""
        try:
            return os.stat(self.absolute(path)).st_mtime_ns // 1_000_000
        except OSError as error:
            self.fail(path, error)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        try:
            os.makedirs(self.absolute(path), exist_ok=True)
        except OSError as error:
            self.fail(path, error)

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory; open handles follow."""
        old, new = self.absolute(source), self.absolute(target)
        try:
            is_directory = stat.S_ISDIR(os.stat(old).st_mode)
            if (is_directory and os.path.lexists(new)) or os.path.isdir(new):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            if source != target:
                self.detach(target)
            os.rename(old, new)
        except OSError as error:
            self.fail(source, error)
        if is_directory:
            self._move_directory(source, target)
        else:
            self._move_file(_split(source), _split(target))

    def delete(self, path: str) -> None:
        """Remove a file or a whole directory; slices of what was in it stay readable."""
        absolute = self.absolute(path)
        try:
            if os.path.isdir(absolute) and not os.path.islink(absolute):
                for directory in [key for key in self._stored if key == path or key.startswith(path + "/")]:
                    for name in list(self._stored[directory]):
                        self.detach(f"{directory}/{name}")
                import shutil  # it brings compression libraries along, which a node at rest can do without

                shutil.rmtree(absolute)
            else:
                self.detach(path)
                os.unlink(absolute)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.fail(path, error)

    def usage(self) -> tuple[int, int]:
        """Total and usable bytes of the volume."""
        try:
            volume = os.statvfs(self.root)
        except OSError as error:
            self.fail("", error)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    # --- for the rest of the runtime ---

    def absolute(self, path: str) -> str:
        """The path as the system knows it; a path that leaves the directory is a ValueError."""
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"{path!r} is not below the log directory")
        if self._not_locked:
            raise StorageError(self.root, path, self._not_locked)
        return os.path.join(self.root, path) if path else self.root

    def detach(self, path: str) -> None:
        """The name is about to go or to mean another file: whoever has it open keeps it by its descriptor."""
        directory, name = _split(path)
        below = self._stored.get(directory)
        stored = None if below is None else below.pop(name, None)
        if below is not None and not below:
            del self._stored[directory]
        if stored is not None:
            try:
                stored.descriptor()
            except OSError as error:
                self.fail(path, error)
            stored.pins += 1

    def reopen(self, stored: _Stored) -> None:
        """Give a file back the descriptor it lost to others."""
        self._descriptors.open(stored, self.absolute(stored.path), os.O_RDWR)

    def forget(self, stored: _Stored) -> None:
        """Its last handle is gone."""
        self._descriptors.close(stored)
        below = self._stored.get(stored.directory)
        if below is not None and below.get(stored.name) is stored:
            del below[stored.name]
            if not below:
                del self._stored[stored.directory]

    def fail(self, path: str, error: OSError) -> NoReturn:
        """Raise what the contract says for an error of the system."""
        if error.errno == errno.ENOENT and os.path.isdir(self.root):
            raise FileNotFoundError(path) from None
        self.fail_open_file(path, error)

    def fail_open_file(self, path: str, error: OSError) -> NoReturn:
        """The same for a file that was there when it was opened: missing now, it was taken away behind our back."""
        raise StorageError(self.root, path, _reason(error)) from error

    def _move_file(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        below = self._stored.get(source[0])
        stored = None if below is None else below.pop(source[1], None)
        if below is not None and not below:
            del self._stored[source[0]]
        if stored is not None:
            stored.directory, stored.name = target
            self._stored.setdefault(target[0], {})[target[1]] = stored

    def _move_directory(self, source: str, target: str) -> None:
        for directory in [key for key in self._stored if key == source or key.startswith(source + "/")]:
            moved = target + directory[len(source) :]
            self._stored[moved] = self._stored.pop(directory)
            for stored in self._stored[moved].values():
                stored.directory = moved


def write_whole(path: str, data: bytes, *, flush: bool = False, dir_fd: int | None = None) -> None:
    """Write a file whole, and wait for the disk if asked."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644, dir_fd=dir_fd)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if flush:
            os.fsync(fd)
    finally:
        os.close(fd)


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
