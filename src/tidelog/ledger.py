"""The ledger: what producers were told, in one small format, and how it is held against a log.

One JSON object a line, written when the outcome of a record is known:

    {"producer": "p", "sequence": 3, "value": "M4", "topic": "events", "partition": 0, "offset": 3,
     "outcome": "acknowledged", "error": "", "time_ms": 1700000000123}

    producer   who sent it
    sequence   that producer's own count, from 0, over all its records; the order in which they were handed over
    value      the record's value; each is sent once (a retry is the same record)
    offset     what the answer said; -1 where there was none
    outcome    acknowledged   the producer was told that it is stored as safely as its acks asked for
               failed         the producer was told, or decided, that it is not stored; it may be there all the same
               unknown        there was no answer and there will be none (acks=0, a producer that died)
    error      Kafka's name of the last error met, empty when there was none
    time_ms    when the outcome was known

The verifier, the simulator and the audit of a lake read and write this and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

ACKNOWLEDGED, FAILED, UNKNOWN = "acknowledged", "failed", "unknown"
OUTCOMES = (ACKNOWLEDGED, FAILED, UNKNOWN)


def offset_told(offset: int | None) -> int:
    """The offset of an acknowledgement, which may have none.

    librdkafka takes a record as stored, too, when the broker has it already or accepts the batch behind it, and has no
    offset to tell then.
    """
    return -1 if offset is None or offset < 0 else offset


@dataclass(frozen=True, slots=True)
class Entry:
    """One record's fate as its producer knows it; see the head of this file."""

    producer: str
    sequence: int
    value: str
    topic: str
    partition: int
    offset: int
    outcome: str
    error: str
    time_ms: int

    def to_line(self) -> str:
        """The entry as a line of a ledger file."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """Read a line; ValueError when it is none of ours."""
        try:
            entry = cls(**json.loads(line))
        except TypeError as error:
            raise ValueError(f"not an entry of a ledger: {error}") from None
        if entry.outcome not in OUTCOMES:
            raise ValueError(f"{entry.outcome!r} is no outcome")
        return entry


@dataclass(frozen=True, slots=True)
class Findings:
    """What a ledger and a log say about each other."""

    lost: tuple[Entry, ...]
    """Acknowledged, and not in the log."""
    moved: tuple[Entry, ...]
    """Acknowledged, in the log, but not at the offset that was told."""
    duplicated: tuple[str, ...]
    """Values that are in the log more than once."""
    reordered: tuple[tuple[str, str], ...]
    """Pairs of values of one producer that are in the log the other way round than they were handed over."""
    unasked: tuple[str, ...]
    """Values in the log that the producer was told are not stored, or was told nothing of."""
    foreign: tuple[str, ...]
    """Values in the log that no producer of the ledger sent."""


def compare(entries: Iterable[Entry], values: Sequence[str]) -> Findings:
    """Hold the entries of one partition against its log: the values in the order of their offsets, from offset 0."""
    entries = list(entries)
    places: dict[str, list[int]] = {}
    for offset, value in enumerate(values):
        places.setdefault(value, []).append(offset)
    acknowledged = [entry for entry in entries if entry.outcome == ACKNOWLEDGED]
    sent = {entry.value: entry for entry in entries}
    return Findings(
        lost=tuple(entry for entry in acknowledged if entry.value not in places),
        moved=tuple(
            entry
            for entry in acknowledged
            if entry.offset >= 0 and entry.value in places and entry.offset not in places[entry.value]
        ),
        duplicated=tuple(value for value, found in places.items() if len(found) > 1),
        reordered=_reordered(entries, places),
        unasked=tuple(value for value in places if value in sent and sent[value].outcome != ACKNOWLEDGED),
        foreign=tuple(value for value in places if value not in sent),
    )


def _reordered(entries: Iterable[Entry], places: dict[str, list[int]]) -> tuple[tuple[str, str], ...]:
    """Neighbours of one producer in the log (by first occurrence) whose sequences go down."""
    last: dict[str, Entry] = {}
    found = []
    stored = [entry for entry in entries if entry.value in places]
    for entry in sorted(stored, key=lambda one: places[one.value][0]):
        before = last.get(entry.producer)
        if before is not None and before.sequence > entry.sequence:
            found.append((before.value, entry.value))
        last[entry.producer] = entry
    return tuple(found)
