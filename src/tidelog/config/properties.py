"""Java's properties syntax, in which Kafka's files are written."""

from __future__ import annotations

from tidelog.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """Names and values of a properties text: `#` and `!` comments, `=`, `:` or blanks between, escapes, long lines.

    A name given twice is refused: Java takes the last, which hides a slip.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line, number)
        if name in found and found[name] != value:
            raise ConfigError(f"line {number}: {name} is given twice, with different values")
        found[name] = value
    return found


def format_properties(properties: dict[str, str]) -> str:
    """The text that `parse_properties` reads back as the same names and values."""
    lines = [f"{_escape(name, is_name=True)}={_escape(value, is_name=False)}" for name, value in properties.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments and blank ones, each with those its odd trailing backslash continues it by."""
    lines: list[tuple[int, str]] = []
    pending = ""
    pending_number = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        start = pending_number or number
        joined = pending + (line[:-1] if continued else line)
        if continued:
            pending, pending_number = joined, start
        else:
            lines.append((start, joined))
            pending, pending_number = "", 0
    if pending:
        lines.append((pending_number, pending))
    return lines


def _split(line: str, number: int) -> tuple[str, str]:
    """The name up to the first unescaped separator, and the value after it."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    name, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescape(name, number), _unescape(rest, number)


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\":
            out.append(letter)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            try:
                out.append(chr(int(digits, 16)))
            except ValueError:
                raise ConfigError(f"line {number}: \\u{digits} is not four hexadecimal digits") from None
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)


def _escape(text: str, *, is_name: bool) -> str:
    escaped = text.replace("\\", "\\\\")
    for letter, plain in _ESCAPES.items():
        escaped = escaped.replace(plain, "\\" + letter)
    if is_name:
        for separator in "=: ":
            escaped = escaped.replace(separator, "\\" + separator)
        return "\\" + escaped if escaped[:1] in ("#", "!") else escaped
    return "\\" + escaped if escaped[:1] == " " else escaped
