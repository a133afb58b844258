"""Bytes of a stream into frames, without copying where it can be helped, and with memory only for what has come.

A stream that brings whole small frames owns no memory: it is read into a buffer that all streams of the loop share.
What is left of a frame at the end of a turn moves to a buffer of the stream's own, which grows with the bytes received
(never with the length a client merely claims), is read into directly from then on, and is given back when idle.

A frame handed out is a writable view, good until the stream is read again or settled.
"""

from __future__ import annotations

import socket
from struct import Struct

from tidelog.errors import DecodeError

SHARED_BYTES = 256 * 1024
OWN_FIRST_BYTES = 4 * 1024
OWN_BUSY_BYTES = 2 * 1024 * 1024
"""The most read ahead of a frame's end for a busy stream."""
KEPT_BYTES = 32 * 1024 * 1024
"""Above this much owned by all streams, none keeps its buffer from one frame to the next."""
_read_length = Struct(">i").unpack_from


class ReceiveMemory:
    """The buffer all streams share, and the account of what streams own."""

    __slots__ = ("limit_bytes", "owned_bytes", "shared")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.owned_bytes = 0
        self.limit_bytes = limit_bytes
        """Above it no stream should begin a new frame; -1 is no limit."""

    @property
    def is_short(self) -> bool:
        """Whether a stream that is between two frames should wait before it is read."""
        return 0 <= self.limit_bytes <= self.owned_bytes


class Receiver:
    """The incoming half of one stream."""

    __slots__ = ("_end", "_is_own", "_large_bytes", "_max_frame_bytes", "_memory", "_start", "_view")

    def __init__(self, memory: ReceiveMemory, max_frame_bytes: int) -> None:
        self._memory = memory
        self._max_frame_bytes = max_frame_bytes
        self._view = memory.shared
        self._is_own = False
        self._large_bytes = 0
        """The size of the last frame that did not come at once and was large; 0 after one that was not."""
        self._start = 0
        self._end = 0

    @property
    def owns_memory(self) -> bool:
        """Whether there is a buffer that `release` could give back."""
        return self._is_own

    @property
    def is_between_frames(self) -> bool:
        """Whether nothing of a next frame has come yet."""
        return self._start == self._end

    def receive(self, source: socket.socket) -> int:
        """Read once; 0 is the end of the stream. Errors of the socket are raised."""
        if self._end == len(self._view):
            self._make_room()
        room_end = len(self._view)
        if self._is_own and self._large_bytes:
            # No further than the frame's end, or in between as far as the last one was long: large frames then start
            # at the front of the buffer, and nothing has to be moved.
            expected = self._missing() if self._end > self._start else self._large_bytes
            room_end = min(room_end, self._end + expected)
        count = source.recv_into(self._view[self._end : room_end])
        self._end += count
        return count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its length, or None; DecodeError for a length that cannot be."""
        start = self._start
        available = self._end - start
        if available < 4:
            return None
        (length,) = _read_length(self._view, start)
        if not 0 < length <= self._max_frame_bytes:
            raise DecodeError(f"a frame of {length} bytes; the limit is {self._max_frame_bytes}")
        if available < 4 + length:
            self._large_bytes = 4 + length if length > SHARED_BYTES else 0
            return None
        self._start = end = start + 4 + length
        return self._view[start + 4 : end]

    def settle(self) -> None:
        """End of this stream's turn: keep what is left where other streams will not write."""
        left = self._end - self._start
        if not left:
            self._start = self._end = 0
            if self._is_own and (len(self._view) < SHARED_BYTES or self._memory.owned_bytes > KEPT_BYTES):
                self._give_back()
        elif not self._is_own:
            self._move_to(max(OWN_FIRST_BYTES, min(2 * left, left + self._missing())))
        elif self._start and self._start + left + self._missing() > len(self._view):
            self._view[:left] = self._view[self._start : self._end]
            self._start, self._end = 0, left

    def release(self) -> None:
        """Give an own buffer back if it is empty."""
        if self._is_own and self._start == self._end:
            self._give_back()

    def close(self) -> None:
        """Give everything back; the stream is over."""
        if self._is_own:
            self._give_back()

    def _give_back(self) -> None:
        self._memory.owned_bytes -= len(self._view)
        self._view = self._memory.shared
        self._is_own = False
        self._start = self._end = 0

    def _missing(self) -> int:
        """How many bytes are known to be still to come for the frame begun."""
        available = self._end - self._start
        if available < 4:
            return 4 - available if available else 0
        (length,) = _read_length(self._view, self._start)
        if not 0 < length <= self._max_frame_bytes:
            return 0
        return max(0, 4 + int(length) - available)

    def _make_room(self) -> None:
        """The buffer is full, so a frame is begun: double it, up to the frame's end or what a busy stream may have."""
        left = self._end - self._start
        needed = left + self._missing()
        self._move_to(min(2 * len(self._view), max(needed, OWN_BUSY_BYTES)))

    def _move_to(self, size_bytes: int) -> None:
        left = self._end - self._start
        view = memoryview(bytearray(size_bytes))
        view[:left] = self._view[self._start : self._end]
        if self._is_own:
            self._memory.owned_bytes -= len(self._view)
        self._memory.owned_bytes += size_bytes
        self._view = view
        self._is_own = True
        self._start, self._end = 0, left
