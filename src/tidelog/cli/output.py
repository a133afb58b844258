"""Text tables and JSON on standard output: the same data, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(document: Any) -> None:
    """One JSON document on one line, so that it can be read by line as well."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, separators=(", ", ": ")) + "\n")


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a table in columns; numbers to the right, all else to the left, an empty or missing cell as a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [_is_numeric([row[column] for row in cells]) for column in range(len(headings))]
    widths = [max(len(line[column]) for line in [list(headings), *cells]) for column in range(len(headings))]

    def line(values: Sequence[str]) -> str:
        padded = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    return [line([heading.upper() for heading in headings]), *(line(row) for row in cells)]


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 partition`, `3 partitions`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def bytes_text(count: int | None) -> str | None:
    """A size for people: 512 B, 34.1 MB."""
    if count is None:
        return None
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return "-" if value is None or value == "" else str(value)


def _is_numeric(column: Sequence[str]) -> bool:
    told = [text for text in column if text != "-"]
    return bool(told) and all(text.lstrip("-").isdigit() for text in told)
