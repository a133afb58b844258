"""Records as lines of text and of JSON: what `consume` prints is what `produce` reads."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tidelog.errors import TidelogError

_FIELDS = {"topic", "partition", "offset", "timestamp", "key", "value", "key_base64", "value_base64", "headers"}


class TextRecord(NamedTuple):
    """A record as it was read from a line."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int | None


class LineError(TidelogError):
    """A line of standard input is not a record."""


def parse_line(line: bytes, key_separator: bytes | None, with_headers: bool) -> TextRecord:
    """`value`, or with separators `name:value,name:value TAB key SEPARATOR value`."""
    headers: list[tuple[str, bytes | None]] = []
    if with_headers:
        before, tab, line = line.partition(b"\t")
        if not tab:
            raise LineError("no tab after the headers")
        for word in filter(None, before.split(b",")):
            name, colon, value = word.partition(b":")
            if not colon:
                raise LineError(f"header {_shown(word)} is not name:value")
            headers.append((_utf8(name, "a header's name"), value))
    key: bytes | None = None
    if key_separator is not None:
        key, found, line = line.partition(key_separator)
        if not found:
            raise LineError(f"no key separator {_shown(key_separator)} in it")
    return TextRecord(key, line, headers, None, None)


def parse_json_line(line: bytes) -> TextRecord:
    """A JSON object with any of key, value, headers, timestamp and partition; `…_base64` for bytes that are no text."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise LineError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise LineError("not a JSON object")
    unknown = fields.keys() - _FIELDS
    if unknown:
        raise LineError(f"field {min(unknown)!r} is not one of {', '.join(sorted(_FIELDS))}")
    for name in ("partition", "timestamp"):
        if fields.get(name) is not None and (not isinstance(fields[name], int) or isinstance(fields[name], bool)):
            raise LineError(f"{name} {fields[name]!r} is not a whole number")
    headers = fields.get("headers") or []
    if isinstance(headers, dict):
        headers = [[name, value] for name, value in headers.items()]
    try:
        pairs = [(str(name), _header_value(value)) for name, value in headers]
    except (TypeError, ValueError):
        raise LineError("headers are neither an object nor a list of [name, value]") from None
    key, value = _bytes_of(fields, "key"), _bytes_of(fields, "value")
    return TextRecord(key, value, pairs, fields.get("timestamp"), fields.get("partition"))


def json_fields(record: Any) -> dict[str, Any]:
    """A record as the object of a JSON line; headers as a list of pairs, because a name may come twice."""
    fields = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    fields["timestamp"] = record.timestamp_ms
    for name, content in (("key", record.key), ("value", record.value)):
        text = text_of(content)
        if text is None and content is not None:
            fields[name + "_base64"] = base64.b64encode(content).decode()
        else:
            fields[name] = text
    fields["headers"] = [[name, _header_json(value)] for name, value in record.headers]
    return fields


def text_of(content: bytes | None) -> str | None:
    """The text that bytes are in UTF-8; None when they are none."""
    try:
        return content.decode() if content is not None else None
    except UnicodeDecodeError:
        return None


def shown(content: bytes | None, limit: int = 200) -> str:
    """Bytes for a person: quoted text, or base64, cut where it gets long."""
    if content is None:
        return "null"
    text = text_of(content)
    told = json.dumps(text, ensure_ascii=False) if text is not None else "base64:" + base64.b64encode(content).decode()
    return told if len(told) <= limit else f"{told[:limit]}… ({len(content)} bytes)"


def time_text(timestamp_ms: int) -> str:
    """A timestamp in UTC; the number itself where it is no date."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return str(timestamp_ms) if timestamp_ms < 0 else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _bytes_of(fields: dict[str, Any], name: str) -> bytes | None:
    if fields.get(name + "_base64") is not None:
        try:
            return base64.b64decode(fields[name + "_base64"], validate=True)
        except (ValueError, TypeError):
            raise LineError(f"{name}_base64 is not base64") from None
    content = fields.get(name)
    if content is None or isinstance(content, str):
        return content.encode() if content is not None else None
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _header_value(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"], validate=True)
    return None if value is None else str(value).encode()


def _header_json(value: bytes | None) -> Any:
    text = text_of(value)
    return {"base64": base64.b64encode(value).decode()} if text is None and value is not None else text


def _utf8(content: bytes, what: str) -> str:
    text = text_of(content)
    if text is None:
        raise LineError(f"{what} is not UTF-8: {content!r}")
    return text


def _shown(content: bytes) -> str:
    return repr(content.decode("utf-8", "replace"))
