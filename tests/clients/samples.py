"""Records that hold every shape a client can send, and what must come back."""

from __future__ import annotations

import random
from dataclasses import dataclass

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Record:
    """One record as a client sees it."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def every_shape() -> list[Record]:
    """Null, empty, binary, text, large and small; headers repeated, empty and null; timestamps going back and forth."""
    noise = random.Random(11)
    shapes = [
        Record(b"key", b"value", BASE_TIMESTAMP_MS),
        Record(None, b"no key", BASE_TIMESTAMP_MS + 5),
        Record(b"tombstone", None, BASE_TIMESTAMP_MS + 1),
        Record(None, None, BASE_TIMESTAMP_MS + 7),
        Record(b"", b"", BASE_TIMESTAMP_MS - 1000),
        Record(bytes(range(256)), bytes(reversed(range(256))), BASE_TIMESTAMP_MS + 9),
        Record("clé".encode(), "valeur ☂".encode(), 1),
        Record(b"h", b"headers", BASE_TIMESTAMP_MS, (("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None))),
        Record(b"big", noise.randbytes(50_000), BASE_TIMESTAMP_MS + 2),
        Record(b"repeats", b"tide" * 20_000, BASE_TIMESTAMP_MS + 3),
    ]
    for number in range(200):
        shapes.append(Record(b"%d" % number, noise.randbytes(number), BASE_TIMESTAMP_MS + number))
    return shapes


def numbered(count: int, size: int = 100) -> list[bytes]:
    """Values that say their place, so that a loss, a repeat or a swap names itself."""
    filling = random.Random(7).randbytes(size)
    return [b"%010d:" % number + filling[: size - 11] for number in range(count)]
