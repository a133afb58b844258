"""Waits for disks so that the loop does not: one helper thread for each storage, started when it is first needed.

What a thread finds waiting it does together: a file named by ten flushes is forced once, and so is a directory. The
order within a storage is kept, and a part of a flush that fails keeps the rest of that flush from happening: a
checkpoint never says more than what is on the disk.

Threads see descriptors and bytes only. Files and storages belong to the loop's thread, which opens and pins what a
flush needs when it takes it in, so a file renamed or deleted meanwhile is still the file that was meant.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from tidelog.effects import Flush
from tidelog.errors import StorageError
from tidelog.runtime.files import DirectoryStorage, StoredFile, write_whole

FlushFinished = Callable[[int, str | None], None]
"""Called on the loop's thread with a Flush's token and the disk's complaint, or None."""

MAX_DESCRIPTORS = 4096
"""Open for flushes at the same time, where the process may have many."""
TEMPORARY_SUFFIX = ".flush.tmp"
"""Not the suffix of `DirectoryStorage.replace`: the two may be at work on one path at the same time."""

_flush_file = getattr(os, "fdatasync", os.fsync)


class _Place(NamedTuple):
    """An open directory: `path` is what it was called when the flush was asked for, `identity` what it is."""

    path: str
    fd: int
    identity: tuple[int, int]


class _Job:
    """A Flush with everything opened; `close` it on the loop's thread."""

    __slots__ = ("_pinned", "directories", "error", "files", "replacements", "root", "size", "token")

    def __init__(self, effect: Flush) -> None:
        storage = effect.storage
        if not isinstance(storage, DirectoryStorage):
            raise TypeError(f"{storage!r} is not a directory of this node")
        self.token = effect.token
        self.size = _size(effect)
        self.root = storage.root
        self.error: str | None = None
        self.files: list[tuple[int, str]] = []
        self.replacements: list[tuple[_Place, str, bytes]] = []
        self.directories: dict[str, _Place] = {}
        self._pinned: list[StoredFile] = []
        try:
            for file in effect.files:
                if not isinstance(file, StoredFile):
                    raise TypeError(f"{file!r} is not a file of this node")
                self.files.append((file.pin(), file.path))
                self._pinned.append(file)
            for path, data in effect.replacements:
                storage.detach(path)
                directory, _, name = path.rpartition("/")
                self.replacements.append((self._place(storage, directory), name, data))
            for directory in effect.directories:
                self._place(storage, directory)
        except StorageError as error:
            self.error = str(error)

    def _place(self, storage: DirectoryStorage, path: str) -> _Place:
        place = self.directories.get(path)
        if place is None:
            try:
                fd = os.open(storage.absolute(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise StorageError(storage.root, path, error.strerror or str(error)) from None
            status = os.fstat(fd)
            place = self.directories[path] = _Place(path, fd, (status.st_dev, status.st_ino))
        return place

    def close(self) -> None:
        pinned, self._pinned = self._pinned, []  # the thread still knows this job: files must not be let go over there
        for file in pinned:
            file.unpin()
        for place in self.directories.values():
            os.close(place.fd)


def _size(effect: Flush) -> int:
    """How many descriptors it needs, at most."""
    return len(effect.files) + len(effect.replacements) + len(effect.directories)


def _carry_out(jobs: list[_Job]) -> None:
    """Do several flushes of one storage as one; each job's `error` says how it went."""
    outcomes: dict[object, str | None] = {}

    def attempt(job: _Job, thing: object, path: str, action: Callable[[], object]) -> None:
        if thing not in outcomes:
            try:
                action()
                outcomes[thing] = None
            except OSError as error:
                outcomes[thing] = str(StorageError(job.root, path, error.strerror or str(error)))
        job.error = outcomes[thing]

    for job in jobs:
        for fd, path in job.files:
            if job.error is None:
                attempt(job, fd, path, partial(_flush_file, fd))
    # Of several contents for one name only the last is written, and it decides for all of them.
    last = {(place.identity, name): job for job in jobs if job.error is None for place, name, _ in job.replacements}
    for job in jobs:
        for place, name, data in job.replacements:
            if job.error is None and last[place.identity, name] is job:
                attempt(job, (place.identity, name), f"{place.path}/{name}", partial(_replace, place.fd, name, data))
    for job in jobs:
        for place, name, _ in job.replacements if job.error is None else ():
            # One that failed before it came to this name has not written it for the others either.
            chosen = last[place.identity, name]
            job.error = outcomes.get((place.identity, name), chosen.error) or job.error
        for place in job.directories.values():
            if job.error is None:
                attempt(job, place.identity, place.path, partial(os.fsync, place.fd))


def _replace(directory_fd: int, name: str, data: bytes) -> None:
    temporary = name + TEMPORARY_SUFFIX
    try:
        write_whole(temporary, data, flush=True, dir_fd=directory_fd)
        os.rename(temporary, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory_fd)
        raise


def carry_out_flush(effect: Flush) -> str | None:
    """Carry out a Flush at once and wait: for tools that run without a loop."""
    job = _Job(effect)
    if job.error is None:
        _carry_out([job])
    job.close()
    return job.error


class Flusher:
    """Carries out Flush effects on helper threads."""

    def __init__(self, finished: FlushFinished, wake: Callable[[], None]) -> None:
        self._finished = finished
        self._wake = wake
        """Thread-safe; makes the loop call `collect`."""
        self._queues: dict[int, SimpleQueue[_Job | None]] = {}
        self._threads: list[Thread] = []
        self._done: SimpleQueue[_Job] = SimpleQueue()
        self._closed: deque[_Job] = deque()
        """Done and closed, to be reported."""
        self._held = 0
        """Descriptors of what is not closed yet."""
        self.max_descriptors = MAX_DESCRIPTORS
        self.pending = 0
        """Flushes taken in and not yet collected."""

    def submit(self, effect: Flush) -> None:
        """Take a Flush in; `finished` is called exactly once for it, from `collect`.

        When too many are open already, as when a node with very many partitions stops, this waits for earlier ones.
        """
        while self._held and self._held + _size(effect) > self.max_descriptors:
            self._closed.append(self._close(self._done.get()))
        job = _Job(effect)
        self._held += job.size
        self.pending += 1
        if job.error is not None:
            self._done.put(job)
            self._wake()
            return
        key = id(effect.storage)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = SimpleQueue()
            thread = Thread(target=self._run, args=(queue,), name=f"flush {job.root}", daemon=True)
            self._threads.append(thread)
            thread.start()
        queue.put(job)

    def collect(self) -> None:
        """Report what finished. Called on the loop's thread."""
        while self._closed or not self._done.empty():
            job = self._closed.popleft() if self._closed else self._close(self._done.get())
            self.pending -= 1
            self._finished(job.token, job.error)

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Let the threads finish what was taken in, and end them. Nothing is reported any more."""
        for queue in self._queues.values():
            queue.put(None)
        for thread in self._threads:
            thread.join(timeout_seconds)
        while not self._done.empty():
            self._close(self._done.get())

    def _close(self, job: _Job) -> _Job:
        job.close()
        self._held -= job.size
        return job

    def _run(self, queue: SimpleQueue[_Job | None]) -> None:
        ending = False
        while not ending:
            taken = [queue.get()]
            while not queue.empty():
                taken.append(queue.get())
            jobs = [job for job in taken if job is not None]
            ending = len(jobs) < len(taken)
            try:
                _carry_out(jobs)
            except Exception as error:  # a thread that died would leave its flushes waiting for ever
                for job in jobs:
                    job.error = job.error or f"log directory {job.root}: {error!r}"
            for job in jobs:
                self._done.put(job)
            self._wake()
