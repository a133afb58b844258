"""Valid requests to start from: what real clients sent, and one of every API and version drawn from its description."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tidelog.storage import Slice
from tidelog.wire import apis, frames
from tidelog.wire.api_table import API_TABLE
from tidelog.wire.batch_records import Record, build_batch
from tidelog.wire.message import Message

RECORDED = Path(__file__).with_name("recorded_frames.txt")
EDGES = {
    "int8": (0, 1, -1, 127, -128),
    "int16": (0, 1, -1, 2, 32_767, -32_768),
    "uint16": (0, 1, 9092, 65_535),
    "int32": (0, 1, -1, 2, 3, 100, 1_000_000, 2_147_483_647, -2_147_483_648),
    "uint32": (0, 1, 4_294_967_295),
    "int64": (0, 1, -1, -2, 5, 1_700_000_000_000, 2**63 - 1, -(2**63)),
    "float64": (0.0, -1.0, 1e300),
}
TEXTS = ("", "1", "fuzz-gone", "retention.ms", "cleanup.policy", "compact", "group", "CONTROLLER", "é☂", "x" * 300)


@cache
def recorded() -> tuple[bytes, ...]:
    """Requests of real clients, without their length."""
    return tuple(bytes.fromhex(line.split()[3]) for line in RECORDED.read_text().splitlines())


def within(version: int, versions: str) -> bool:
    """Whether Kafka's way to write a range ("3+", "0-2", "4", "") includes a version."""
    if not versions:
        return False
    first, _, last = versions.rstrip("+").partition("-")
    if versions.endswith("+"):
        return version >= int(first)
    return int(first) <= version <= int(last or first)


class Generator:
    """Draws requests that decode well and mean all sorts of things."""

    def __init__(self, topics: Mapping[str, bytes], served: Iterable[int]) -> None:
        self.topics = tuple(topics)
        self.topic_ids = tuple(topics.values())
        self.served = tuple(each for each in served if each in API_TABLE)

    def request(self, chance: random.Random) -> bytes:
        """A request of any API and version, without its length."""
        api_key = chance.choice(self.served if chance.random() < 0.9 else tuple(API_TABLE))
        first, last = apis.api_versions(api_key)
        version = chance.randint(max(first, 0), max(last, 0))
        body = self.message(chance, apis.request_class(api_key), version)
        parts = frames.encode_request(api_key, version, chance.getrandbits(31), "fuzz", body)
        return b"".join(each.read() if isinstance(each, Slice) else bytes(each) for each in parts)[4:]

    def message(self, chance: random.Random, kind: type[Message], version: int, depth: int = 0) -> Message:
        """An instance with drawn values for every field this version has."""
        values: dict[str, Any] = {}
        for name, of, versions, nullable, _tag, tagged, _default, _flexible in kind.FIELDS:
            if not within(version, versions):
                continue
            if tagged and within(version, tagged) and chance.random() < 0.5:
                continue
            if within(version, nullable) and chance.random() < 0.15:
                values[name] = None
            else:
                values[name] = self.value(chance, name, of, version, depth)
        return kind(**values)

    def value(self, chance: random.Random, name: str, of: Any, version: int, depth: int) -> Any:
        """A value of a field's type."""
        if isinstance(of, tuple):
            count = chance.choice((0, 1, 1, 1, 2, 3)) if depth < 4 else 0
            return [self.message(chance, of[0], version, depth + 1) for _ in range(count)]
        if isinstance(of, type):
            return self.message(chance, of, version, depth + 1)
        if of.startswith("[]"):
            return [self.value(chance, name, of[2:], version, depth) for _ in range(chance.randint(0, 3))]
        if "wait" in name:
            return chance.choice((0, 0, 1, 5))  # a poll that is parked for long only holds up what is behind it
        if of == "bool":
            return chance.random() < 0.5
        if of == "string":
            return chance.choice(self.topics if chance.random() < 0.7 else TEXTS)
        if of == "uuid":
            return chance.choice(self.topic_ids) if chance.random() < 0.7 else chance.randbytes(16)
        if of == "bytes":
            return chance.randbytes(chance.randint(0, 40))
        if of == "records":
            return self.records(chance)
        if "partition" in name or name == "index":
            return chance.choice((0, 0, 0, 1, 2, -1))
        return chance.choice(EDGES[of]) if chance.random() < 0.8 else chance.randint(0, 100)

    def records(self, chance: random.Random) -> bytes:
        """A sound batch, or a few."""
        batches = b""
        for _ in range(chance.choice((1, 1, 1, 2))):
            content = [
                Record(
                    offset=number,
                    timestamp=1_700_000_000_000 + number,
                    key=chance.choice((None, b"key")),
                    value=chance.randbytes(20),
                    headers=[],
                )
                for number in range(chance.randint(1, 3))
            ]
            batches += bytes(build_batch(content))
        return batches
