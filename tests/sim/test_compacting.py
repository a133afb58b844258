"""Histories of a compacted topic are clean, and find the bugs that are put in."""

from __future__ import annotations

import pytest

from tidelog.sim import compacting, mutants
from tidelog.sim.checkers.compacted import disagreement, last_values
from tidelog.wire.batch import Record, build_batch


@pytest.mark.parametrize("seed", [3, 11])
def test_histories_are_clean(seed: int) -> None:
    history = compacting.run(seed)
    assert not isinstance(history, str), history
    assert history.cleanings > 30


@pytest.mark.parametrize("name", ["last-value-dropped", "tombstone-too-early", "uncommitted-cleaned"])
def test_bugs_that_are_put_in_are_found(name: str) -> None:
    found = mutants.hunt(mutants.ALL[name], range(300_000, 300_006))
    assert found.is_proven, found.complaint


def log(*records: tuple[int, bytes, bytes | None]) -> bytes:
    return b"".join(build_batch([Record(offset, 0, key, value)]) for offset, key, value in records)


def test_replicas_may_differ_in_what_is_gone_and_in_nothing_else() -> None:
    whole = log((0, b"a", b"1"), (1, b"b", b"1"), (2, b"a", b"2"), (3, b"b", None))
    cleaned = log((2, b"a", b"2"), (3, b"b", None))
    assert last_values(whole) == last_values(cleaned) == {b"a": b"2"}
    assert disagreement({1: whole, 2: cleaned}) == ""
    assert "offset 2" in disagreement({1: whole, 2: log((2, b"a", b"other"))})
    assert "b'b'" in disagreement({1: cleaned, 2: log((1, b"b", b"1"), (2, b"a", b"2"))})
    assert "b'a'" in disagreement({1: whole, 2: log((1, b"b", b"1"), (3, b"b", None))})
