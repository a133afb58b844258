"""The records of several batches in one piece of memory, decompressed where they were compressed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.compression import MAX_DECOMPRESSED_BYTES, Compression, decompress

Array = Any
_FULL = "failed to write whole buffer"
_INTO = {Compression.GZIP: "gzip", Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}


class Payloads:
    """Memory that grows and is used again for every answer: fresh memory costs a page fault every four kilobytes."""

    def __init__(self) -> None:
        self._memory: Array = np.empty(0, np.uint8)
        self.size = 0

    @property
    def data(self) -> Array:
        """What was added since `clear`; valid until the next `clear`."""
        return self._memory[: self.size]

    def clear(self) -> None:
        """Forget what was added; the memory stays."""
        self.size = 0

    def add(self, kind: int, payload: memoryview) -> tuple[int, int]:
        """Append one batch's records and return where they begin and end; KafkaError when they cannot be read."""
        start = self.size
        name = _INTO.get(Compression(kind)) if kind <= Compression.ZSTD else None
        if name is None:
            # Snappy names its sizes and has a framing of its own; an unknown kind is refused by its number.
            plain = payload if kind == Compression.NONE else memoryview(decompress(kind, payload))
            self._reserve(len(plain))
            self._memory[start : start + len(plain)] = np.frombuffer(plain, np.uint8)
            self.size += len(plain)
        else:
            self.size += self._decompress(name, payload)
        return start, self.size

    def _decompress(self, name: str, payload: memoryview) -> int:
        """Straight into the memory, with a guess at the room it takes: the formats' own word for it is the sender's."""
        import cramjam

        room = min(MAX_DECOMPRESSED_BYTES, max(65_536, 6 * len(payload)))
        while True:
            self._reserve(room)
            try:
                target = memoryview(self._memory)[self.size : self.size + room]
                return int(getattr(cramjam, name).decompress_into(payload, target))
            except Exception as error:
                if _FULL not in str(error):
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"compressed records cannot be read: {error}") from None
                if room >= MAX_DECOMPRESSED_BYTES:
                    raise KafkaError(
                        ErrorCode.CORRUPT_MESSAGE, f"compressed records hold more than {MAX_DECOMPRESSED_BYTES} bytes"
                    ) from None
                room = min(MAX_DECOMPRESSED_BYTES, room * 4)

    def _reserve(self, room: int) -> None:
        wanted = self.size + room
        if wanted > self._memory.size:
            grown = np.empty(max(wanted, 2 * self._memory.size), np.uint8)
            grown[: self.size] = self._memory[: self.size]
            self._memory = grown
