"""Readers of stored files, one a kind of file. Each yields what it finds, in order, and goes on behind an oddity.

A reader is a function of (content, path) that yields `Found` and `Damage`; what it knows of a file is in its bytes and
its name, so it needs no running node and no other file (an index is held against its segment when that is there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Found(NamedTuple):
    """One thing in a file, for programs and for people."""

    fields: dict[str, Any]
    text: str


class Damage(NamedTuple):
    """Bytes that are not what they should be."""

    position: int
    reason: str


def unused(content: memoryview, position: int) -> Found:
    """Zeros from here to the end: a file made at its full size, by a broker that runs or was killed."""
    count = len(content) - position
    return Found({"at": position, "unused_bytes": count}, f"@{position}  {count} unused bytes")


def is_zeros(content: memoryview) -> bool:
    """Whether there is nothing but zeros."""
    return not bytes(content).strip(b"\0")


Item = Found | Damage
Reader = Callable[[memoryview, str], Iterator[Item]]
