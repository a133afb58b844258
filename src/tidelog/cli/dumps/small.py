"""Producer snapshots, and Kafka's small text files: checkpoints, meta.properties, partition.metadata, quorum-state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import Struct

from tidelog.cli.dumps import Damage, Found, Item
from tidelog.cli.records_text import time_text
from tidelog.wire.batch import crc32c

_SNAPSHOT_HEADER = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CHECKSUMMED_FROM = 6


def read_producer_snapshot(content: memoryview, path: str) -> Iterator[Item]:
    """Producers and the last batch of each, as the log knew them at the offset in the file's name."""
    if len(content) < _SNAPSHOT_HEADER.size:
        yield Damage(0, f"{len(content)} bytes are too few for a producer snapshot")
        return
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(content)
    if version != 1:
        yield Damage(0, f"a producer snapshot of version {version}")
        return
    if crc32c(content[_CHECKSUMMED_FROM:], 0) != crc:
        yield Damage(2, "the content does not match its checksum")
    for number in range(max(count, 0)):
        at = _SNAPSHOT_HEADER.size + number * _SNAPSHOT_ENTRY.size
        if at + _SNAPSHOT_ENTRY.size > len(content):
            yield Damage(at, f"{count} producers are announced and {number} are there")
            return
        entry = _SNAPSHOT_ENTRY.unpack_from(content, at)
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = entry
        fields = {
            "at": at,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "last_sequence": sequence,
            "last_offset": offset,
            "offset_delta": delta,
            "timestamp": timestamp,
            "coordinator_epoch": coordinator_epoch,
            "current_transaction_first_offset": first,
        }
        transaction = f"  transaction from {first}" if first >= 0 else ""
        yield Found(
            fields,
            f"@{at}  producer {producer_id}/{epoch}  last sequence {sequence}  last offset {offset}"
            f"  {time_text(timestamp)}{transaction}",
        )
    end = _SNAPSHOT_HEADER.size + max(count, 0) * _SNAPSHOT_ENTRY.size
    if end < len(content):
        yield Damage(end, f"{len(content) - end} bytes behind the last producer")


def read_offset_checkpoint(content: memoryview, path: str) -> Iterator[Item]:
    """Lines `topic partition offset`."""
    for at, line in _checkpoint_lines(content):
        if isinstance(line, Damage):
            yield line
            return
        words = line.split(" ")
        if len(words) != 3 or not words[1].isdigit() or not _is_number(words[2]):
            yield Damage(at, f"{line[:80]!r} is not topic, partition, offset")
            continue
        topic, partition, offset = words[0], int(words[1]), int(words[2])
        fields = {"at": at, "topic": topic, "partition": partition, "offset": offset}
        yield Found(fields, f"{topic}-{partition}  {offset}")


def read_epoch_checkpoint(content: memoryview, path: str) -> Iterator[Item]:
    """Lines `epoch start-offset`, both rising."""
    before = (-1, -1)
    for at, line in _checkpoint_lines(content):
        if isinstance(line, Damage):
            yield line
            return
        words = line.split(" ")
        if len(words) != 2 or not all(map(_is_number, words)):
            yield Damage(at, f"{line[:80]!r} is not epoch, start offset")
            continue
        epoch, start = int(words[0]), int(words[1])
        yield Found({"at": at, "epoch": epoch, "start_offset": start}, f"epoch {epoch} from offset {start}")
        if epoch <= before[0] or start < before[1]:
            yield Damage(at, f"epoch {epoch} from {start} comes after epoch {before[0]} from {before[1]}")
        before = (epoch, start)


def read_properties(content: memoryview, path: str) -> Iterator[Item]:
    """Lines `name=value` (meta.properties) or `name: value` (partition.metadata)."""
    separator = ": " if path.endswith("partition.metadata") else "="
    at = 0
    for raw in bytes(content).split(b"\n"):
        line = raw.decode("utf-8", "replace").strip()
        if line and not line.startswith("#"):
            name, found, value = line.partition(separator)
            if not found:
                yield Damage(at, f"{line[:80]!r} is not name{separator}value")
            else:
                yield Found({"at": at, "name": name.strip(), "value": value.strip()}, f"{name.strip()}={value.strip()}")
        at += len(raw) + 1


def read_json(content: memoryview, path: str) -> Iterator[Item]:
    """One JSON object (quorum-state, .kafka_cleanshutdown, .tidelog-registered)."""
    text = bytes(content).decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except ValueError as error:
        at = len(text[: getattr(error, "pos", 0)].encode())
        yield Damage(at, f"not JSON: {getattr(error, 'msg', error)}")
        return
    if not isinstance(document, dict):
        yield Damage(0, "not a JSON object")
        return
    yield Found({"at": 0, **document}, "\n".join(f"{name}={value}" for name, value in document.items()))


def _checkpoint_lines(content: memoryview) -> Iterator[tuple[int, str | Damage]]:
    """Entries of a checkpoint file: version, number of entries, then one a line."""
    at = 0
    lines: list[tuple[int, str]] = []
    for raw in bytes(content).split(b"\n"):
        if raw.strip():
            lines.append((at, raw.decode("utf-8", "replace").strip()))
        at += len(raw) + 1
    if not lines or lines[0][1] != "0":
        yield 0, Damage(0, f"version {lines[0][1][:40]!r} is not 0" if lines else "the file is empty")
        return
    if len(lines) < 2 or not lines[1][1].isdigit():
        yield 0, Damage(lines[1][0] if len(lines) > 1 else len(content), "the number of entries is missing")
        return
    yield from lines[2:]
    if len(lines) - 2 != int(lines[1][1]):
        yield 0, Damage(lines[1][0], f"{lines[1][1]} entries are announced and {len(lines) - 2} are there")


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit()
