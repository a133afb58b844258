"""What every generated message class is built on."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from tidelog.wire.uuids import ZERO_UUID, to_text

__all__ = ["EMPTY", "EMPTY_STRUCT", "ZERO_UUID", "Field", "Message", "Records"]

Field: TypeAlias = tuple[str, Any, str, str, int, str, Any, str | None]
"""Attribute, type, versions, nullable versions, tag (-1: none), tagged versions, default, own flexible versions.

A type is Kafka's name ("int32", "[]string"), a message class for a nested structure, or a tuple of one class for a
list of them. Versions are written as Kafka does ("3+", "0-2", "4"), with "" for none. The default of a nested structure
is its class.
"""

Records: TypeAlias = Any
"""Batches. Decoded: None or a memoryview of the frame. To encode: those, bytes-like, a Slice, or a list of them."""

EMPTY: list[Any] = []
"""Stands for "a new empty list" as an argument's default; never stored and never changed."""
EMPTY_STRUCT: Any = object()
"""The same for a nested structure that may be null but is not by default."""


class Message:
    """A request, response, record or a structure inside one: plain attributes, and a table that says how to write them.

    A class covers all versions. Fields that a version lacks are ignored when encoding and have their default after
    decoding. A tagged structure that cannot be null is None where Kafka has a structure full of defaults.
    """

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = ""
    API_KEY: ClassVar[int] = -1

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field[0]) == getattr(other, field[0]) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def as_plain(self) -> dict[str, Any]:
        """The message as JSON can hold it: UUIDs as Kafka's text, bytes as hexadecimal digits."""
        return {row[0]: _plain(getattr(self, row[0]), row[1]) for row in self.FIELDS}

    def __repr__(self) -> str:
        """Only what differs from the defaults: answers have dozens of fields and a reader wants the few that matter."""
        default = type(self)()
        shown = []
        for field in self.FIELDS:
            value = getattr(self, field[0])
            if value == getattr(default, field[0]):
                continue
            if isinstance(value, bytes | bytearray | memoryview) and len(value) > 32:
                shown.append(f"{field[0]}=<{len(value)} bytes>")
            elif isinstance(value, memoryview):
                shown.append(f"{field[0]}={bytes(value)!r}")
            else:
                shown.append(f"{field[0]}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _plain(value: Any, kind: Any) -> Any:
    if isinstance(value, Message):
        return value.as_plain()
    if isinstance(value, list):
        return [_plain(item, kind) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return to_text(bytes(value)) if kind in ("uuid", "[]uuid") else value.hex()
    return value
