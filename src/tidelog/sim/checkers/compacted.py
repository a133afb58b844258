"""Compacted logs, compared: replicas clean on their own, so they differ in bytes and must agree in what they say."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.wire.batch import iterate_batches, iterate_records

Said = tuple[bytes | None, bytes | None]
"""Key and value of a record."""


def records_in(data: bytes) -> dict[int, Said]:
    """What a log's bytes say at each offset that is left."""
    return {
        record.offset: (record.key, record.value)
        for batch in iterate_batches(data)
        if not batch.is_control
        for record in iterate_records(batch)
    }


def last_values(data: bytes) -> dict[bytes, bytes]:
    """What somebody who reads it all knows in the end: the last value of each key, without those deleted."""
    known: dict[bytes, bytes | None] = {}
    for _, (key, value) in sorted(records_in(data).items()):
        if key is not None:
            known[key] = value
    return {key: value for key, value in known.items() if value is not None}


def wrong_value(data: bytes, allowed: Mapping[bytes, list[str]]) -> str:
    """What a log's bytes say of a key that it cannot be ("" is deleted); "" when there is nothing."""
    known = last_values(data)
    for key, values in allowed.items():
        found = known.get(key, b"").decode()
        if found not in values:
            return f"{key!r} is {found or 'deleted'!r} in the end, and can only be one of {values}"
    return ""


def disagreement(logs: Mapping[int, bytes]) -> str:
    """Where the logs of a partition's replicas, by node, say different things; "" when they do not.

    An offset may be left here and gone there, but none says two things, and the last value of each key is the same.
    """
    if found := contradiction(logs):
        return found
    values = {node_id: last_values(data) for node_id, data in logs.items()}
    for node_id, known in values.items():
        for other, others in values.items():
            for key in sorted(known.keys() | others.keys()):
                if known.get(key) != others.get(key):
                    return f"{key!r} is {known.get(key)!r} on node {node_id} and {others.get(key)!r} on node {other}"
    return ""


def contradiction(logs: Mapping[int, bytes]) -> str:
    """An offset at which the logs of a partition's replicas say two things; "" when there is none."""
    said: dict[int, tuple[int, Said]] = {}
    for node_id, data in logs.items():
        for offset, here in records_in(data).items():
            other, there = said.setdefault(offset, (node_id, here))
            if there != here:
                return f"offset {offset} is {here} on node {node_id} and {there} on node {other}"
    return ""
