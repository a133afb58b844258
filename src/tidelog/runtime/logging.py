"""What a node has to say, one line an event: for people by default, as JSON by a switch.

    2026-11-15 04:13:22.123 info  listening listener=PLAINTEXT address=127.0.0.1:9092
    {"time": "2026-11-15T04:13:22.123Z", "level": "info", "event": "listening", "listener": "PLAINTEXT", …}

A line never fails its caller and never breaks in two, whatever a client put into a name. Warnings about clients are
limited to so many a second of each kind; the next line says how many were left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from tidelog.wire.uuids import to_text

WARNINGS_PER_SECOND = 50
"""Of one kind, for what clients cause."""
MAX_VALUE_CHARACTERS = 1000


class EventLog:
    """Writes lines to a descriptor: standard error, or a file opened for appending."""

    def __init__(self, fd: int = 2, *, json: bool = False) -> None:
        self._fd = fd
        self._json = json
        self._recent: dict[str, list[int]] = {}
        """By kind: the second, lines written in it, lines left out since."""

    @classmethod
    def to_file(cls, path: str, *, json: bool = False) -> EventLog:
        """Append to a file; it may be truncated or moved away by others."""
        return cls(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644), json=json)

    def tell(self, kind: str, fields: Mapping[str, Any], level: str = "info") -> None:
        """Write one line."""
        if level == "debug":
            return
        now_ns = time.time_ns()
        line = self._as_json(now_ns, kind, fields, level) if self._json else self._as_text(now_ns, kind, fields, level)
        data = line.encode("utf-8", "backslashreplace")
        with suppress(OSError):  # a full disk or a closed terminal must not stop a node
            while data:
                data = data[os.write(self._fd, data) :]

    def info(self, kind: str, /, **fields: Any) -> None:
        """Something happened as it should."""
        self.tell(kind, fields)

    def warning(self, kind: str, /, **fields: Any) -> None:
        """A client or the surroundings did something wrong; many of a kind in a second are counted, not written."""
        second = time.time_ns() // 1_000_000_000
        recent = self._recent.setdefault(kind, [second, 0, 0])
        if recent[0] != second:
            recent[0], recent[1] = second, 0
        if recent[1] >= WARNINGS_PER_SECOND:
            recent[2] += 1
            return
        recent[1] += 1
        if recent[2]:
            fields["left_out_before"], recent[2] = recent[2], 0
        self.tell(kind, fields, "warning")

    def error(self, kind: str, /, **fields: Any) -> None:
        """The node itself is in trouble."""
        self.tell(kind, fields, "error")

    def failure(self, kind: str, error: Exception, /, **fields: Any) -> None:
        """A mistake in the product: what and where, still in one line."""
        import traceback  # not before something is wrong

        frames = traceback.extract_tb(error.__traceback__)[-6:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        self.tell(kind, {**fields, "error": f"{type(error).__name__}: {error}", "where": where}, "error")

    def _as_text(self, now_ns: int, kind: str, fields: Mapping[str, Any], level: str) -> str:
        seconds, rest = divmod(now_ns, 1_000_000_000)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
        values = "".join(f" {name}={_quoted(_plain(value))}" for name, value in fields.items())
        return f"{moment}.{rest // 1_000_000:03} {level:<7} {kind}{values}\n"

    def _as_json(self, now_ns: int, kind: str, fields: Mapping[str, Any], level: str) -> str:
        import json  # a few milliseconds of start-up that text does not need

        seconds, rest = divmod(now_ns, 1_000_000_000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        line = {"time": f"{moment}.{rest // 1_000_000:03}Z", "level": level, "event": kind}
        for name, value in fields.items():
            line.setdefault(name, _jsonable(value))
        return json.dumps(line) + "\n"


def _plain(value: Any) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return to_text(value) if len(value) == 16 else value.hex()
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ",".join(_plain(item) for item in value) + "]"
    return str(value)


def _quoted(text: str) -> str:
    if len(text) > MAX_VALUE_CHARACTERS:
        text = text[:MAX_VALUE_CHARACTERS] + "…"
    if text and text.isprintable() and " " not in text and '"' not in text:
        return text
    escaped = "".join(
        letter
        if letter.isprintable() and letter not in '"\\'
        else f"\\{letter}"
        if letter in '"\\'
        else ascii(letter)[1:-1]
        for letter in text
    )
    return f'"{escaped}"'


def _jsonable(value: Any) -> Any:
    if value is None or (isinstance(value, (bool, int, float)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(item) for item in value]
    text = _plain(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…"
