"""Chunks on their way from one task to another through files, where all tasks are on one machine.

A shuffle would take the same bytes through Spark's JVM twice, which costs more than all the rest. With a spool the
shuffle carries only where they are. The driver makes the folder and removes it when the batch is done.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from uuid import uuid4

from tidelog.wire.varints import Buffer


class SpoolWriter:
    """One gathering task's file; every run of a task has its own."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, uuid4().hex)
        self._position = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def put(self, payload: Buffer) -> str:
        """Write a chunk; the words by which another task finds it."""
        if self._file is None:
            self._file = open(self._path, "wb", buffering=0)  # noqa: SIM115 - closed by the block
        view = memoryview(payload)
        written = 0
        while written < len(view):
            written += self._file.write(view[written:]) or 0
        place = f"{self._position}:{len(view)}:{self._path}"
        self._position += len(view)
        return place


class SpoolReader:
    """What a delivering task reads; files stay open for as long as it runs."""

    def __init__(self) -> None:
        self._files: dict[str, mmap.mmap] = {}

    def get(self, place: str) -> memoryview:
        """The chunk that was put there."""
        start, length, path = place.split(":", 2)
        content = self._files.get(path)
        if content is None or len(content) < int(start) + int(length):
            with Path(path).open("rb") as file:
                content = self._files[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return memoryview(content)[int(start) : int(start) + int(length)]
