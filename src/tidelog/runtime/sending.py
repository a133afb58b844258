"""Answers onto a socket: bytes gathered into one system call, large slices of files straight from the page cache.

Nothing here waits. What the socket does not take stays queued, with the files of its slices pinned, until the loop says
that it can be written again.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable

from tidelog.errors import TidelogError
from tidelog.storage import Slice

SMALL_SLICE_BYTES = 16 * 1024
"""Up to here a slice is read and goes with its neighbours: measured, sendfile pays above it."""
GATHER_BYTES = 256 * 1024
GATHER_PARTS = 64
JOIN_BYTES = 64 * 1024
"""Up to here copying parts together is cheaper than handing them to the system one by one: half, for 50 answers."""
TURN_BYTES = 4 * 1024 * 1024
"""The most written to one socket before others have their turn."""
FALLBACK_CHUNK_BYTES = 256 * 1024
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_sendfile = getattr(os, "sendfile", None)


class SliceCut(TidelogError):
    """The log was truncated under an answer on its way out. The client must not get it, so its connection ends."""


class Sender:
    """The outgoing half of one stream."""

    __slots__ = ("_done", "_parts", "_socket", "queued_bytes")

    def __init__(self, target: socket.socket) -> None:
        self._socket = target
        self._parts: deque[bytes | memoryview | Slice] = deque()
        self._done = 0
        """Bytes of the first part, a large slice, that are sent already."""
        self.queued_bytes = 0

    def add(self, parts: Iterable[bytes | Slice]) -> None:
        """Queue parts; nothing is sent before `send`."""
        for part in parts:
            self._parts.append(part)
            self.queued_bytes += len(part)

    def send(self) -> bool:
        """Send what the socket takes; False when something is left. Raises SliceCut, StorageError or OSError."""
        parts = self._parts
        allowance = TURN_BYTES
        try:
            while parts and allowance > 0:
                first = parts[0]
                if isinstance(first, Slice) and first.length > SMALL_SLICE_BYTES:
                    sent = self._send_slice(first, min(first.length - self._done, allowance))
                else:
                    sent = self._send_gathered()
                allowance -= sent
                self.queued_bytes -= sent
        except BlockingIOError:
            return False
        return not parts

    def clear(self) -> None:
        """Forget what is queued, and let go of its files."""
        self._parts.clear()
        self.queued_bytes = 0

    def _send_gathered(self) -> int:
        parts = self._parts
        if len(parts) == 1 and type(parts[0]) is bytes:  # most answers, and all of a reader that has all
            only = parts[0]
            sent = self._socket.send(only)
            if sent < len(only):
                parts[0] = memoryview(only)[sent:]
            else:
                parts.clear()
            return sent
        gathered: list[bytes | memoryview] = []
        size = 0
        flags = 0
        for part in parts:
            if isinstance(part, Slice):
                if part.length > SMALL_SLICE_BYTES:
                    flags = _MSG_MORE
                    break
                part = _read(part, 0, part.length)
            gathered.append(part)
            size += len(part)
            if size >= GATHER_BYTES or len(gathered) >= GATHER_PARTS:
                break
        count = len(gathered)
        if count > 1 and size <= JOIN_BYTES:
            gathered = [b"".join(gathered)]
        if len(gathered) == 1:
            sent = self._socket.send(gathered[0], flags)
        else:
            sent = self._socket.sendmsg(gathered, (), flags)
        if count == len(parts):
            parts.clear()
        else:
            for _ in range(count):
                parts.popleft()
        if sent < size:
            # Bytes read from a slice stay read: part of them may be out.
            parts.extendleft(reversed(_behind(gathered, sent)))
        return sent

    def _send_slice(self, part: Slice, count: int) -> int:
        if not part.valid:
            raise SliceCut(f"{part.file.path} was truncated below an answer on its way out")
        position = part.position + self._done
        descriptor = getattr(part.file, "descriptor", None)
        if _sendfile is None or descriptor is None:
            sent = self._socket.send(_read(part, self._done, min(count, FALLBACK_CHUNK_BYTES)))
        else:
            sent = _sendfile(self._socket.fileno(), descriptor(), position, count)
            if not sent:
                raise SliceCut(f"{part.file.path} ends before byte {position}")
        self._done += sent
        if self._done == part.length:
            self._parts.popleft()
            self._done = 0
        return sent


def _read(part: Slice, offset: int, length: int) -> bytes:
    if not part.valid:
        raise SliceCut(f"{part.file.path} was truncated below an answer on its way out")
    data = part.file.read(part.position + offset, length)
    if len(data) != length:
        raise SliceCut(f"{part.file.path} ends before byte {part.position + offset + length}")
    return data


def _behind(parts: list[bytes | memoryview], position: int) -> list[bytes | memoryview]:
    """What is behind a position of parts in a row."""
    for index, part in enumerate(parts):
        if position < len(part):
            return [memoryview(part)[position:], *parts[index + 1 :]]
        position -= len(part)
    return []
