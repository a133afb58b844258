"""What must hold at the end of a run, as functions over what was recorded.

Records of a run are numbered: a value is `PRODUCER:SEQUENCE` and stands for one record; here it is one integer (see
`number_of`), so that an hour's worth fits into memory. A partition's log is an array of them, the index is the offset.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.ledger import ACKNOWLEDGED, Entry, compare

_SEQUENCE_BITS = 40
SHOWN = 5
"""Violations of one kind that are spelled out for one partition; the rest are counted."""


class Violation(NamedTuple):
    """One thing that must not be."""

    kind: str
    """lost, moved, duplicated, reordered, foreign, vanished, skipped, conflicting, behind, differing or failed."""
    partition: int
    text: str


class Seen(NamedTuple):
    """What one consumer was given of one partition, from offset 0."""

    consumer: str
    numbers: array[int]
    """By offset."""
    complaints: Sequence[str]
    """What went wrong while reading: an offset left out, or given twice with different values."""


def number_of(value: str) -> int:
    """The integer that stands for a value `PRODUCER:SEQUENCE`, both being numbers."""
    producer, _, sequence = value.partition(":")
    return int(producer) << _SEQUENCE_BITS | int(sequence)


def value_of(number: int) -> str:
    """The value an integer stands for."""
    return f"{number >> _SEQUENCE_BITS}:{number & ((1 << _SEQUENCE_BITS) - 1)}"


def judge_ledger(partition: int, entries: Iterable[Entry], log: array[int]) -> list[Violation]:
    """Hold what producers were told against the final log."""
    entries = list(entries)
    findings = compare(entries, [value_of(number) for number in log])
    found = {
        "lost": [f"{one.value} was acknowledged at offset {one.offset} and is gone" for one in findings.lost],
        "moved": [
            f"{one.value} was acknowledged at offset {one.offset}, where another record is" for one in findings.moved
        ],
        "duplicated": [f"{value} is there more than once" for value in findings.duplicated],
        "reordered": [f"{later} comes before {earlier}" for later, earlier in findings.reordered],
        "foreign": [f"{value} was never sent" for value in findings.foreign],
        "failed": [
            f"{one.value} was given up after its last error: {one.error or 'none'}"
            for one in entries
            if one.outcome != ACKNOWLEDGED
        ],
    }
    return [Violation(kind, partition, text) for kind, texts in found.items() for text in texts]


def judge_seen(partition: int, seen: Seen, log: array[int]) -> list[Violation]:
    """Hold what a consumer saw against the final log: nothing vanished, nothing changed, nothing is missing."""
    violations = [Violation("skipped", partition, f"{seen.consumer}: {text}") for text in seen.complaints]
    shared = min(len(seen.numbers), len(log))
    if seen.numbers[:shared] != log[:shared]:
        violations += [
            Violation(
                "conflicting",
                partition,
                f"{seen.consumer} saw {value_of(seen.numbers[offset])} at offset {offset}, "
                f"where {value_of(log[offset])} is now",
            )
            for offset in range(shared)
            if seen.numbers[offset] != log[offset]
        ]
    violations += [
        Violation(
            "vanished", partition, f"{seen.consumer} saw {value_of(seen.numbers[offset])} at offset {offset}, now gone"
        )
        for offset in range(len(log), len(seen.numbers))
    ]
    if len(seen.numbers) < len(log):
        text = f"{seen.consumer} was given {len(seen.numbers)} of {len(log)} records"
        violations.append(Violation("behind", partition, text))
    return violations


class StoredBatch(NamedTuple):
    """One batch of a replica's segment files."""

    base_offset: int
    last_offset: int
    digest: bytes
    """Of all its bytes."""


def judge_replicas(
    partition: int, replicas: Mapping[int, Sequence[StoredBatch]], high_watermark: int
) -> list[Violation]:
    """Below the high watermark every replica has the same bytes; each is held against the first."""
    committed = {
        node: [batch for batch in batches if batch.last_offset < high_watermark] for node, batches in replicas.items()
    }
    violations = []
    for node, batches in committed.items():
        end_offset = batches[-1].last_offset + 1 if batches else 0
        if end_offset != high_watermark:
            text = f"node {node} has records up to {end_offset}, the high watermark is {high_watermark}"
            violations.append(Violation("differing", partition, text))
    nodes = list(committed)
    for node in nodes[1:]:
        for first, other in zip(committed[nodes[0]], committed[node], strict=False):
            if first != other:
                text = f"nodes {nodes[0]} and {node} differ at offset {min(first.base_offset, other.base_offset)}"
                violations.append(Violation("differing", partition, text))
                break
    return violations
