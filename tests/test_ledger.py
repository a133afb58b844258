"""The ledger names what was acknowledged and is gone, and everything else a log may have done to its producers."""

from __future__ import annotations

import pytest

from tidelog.ledger import ACKNOWLEDGED, FAILED, UNKNOWN, Entry, compare, offset_told


def entry(value: str, sequence: int, outcome: str = ACKNOWLEDGED, offset: int = -1, producer: str = "p") -> Entry:
    return Entry(producer, sequence, value, "events", 0, offset, outcome, "", 1_700_000_000_000)


def test_an_entry_survives_its_line() -> None:
    one = entry('größe "4"', 3, FAILED)
    assert "\n" not in one.to_line()
    assert Entry.from_line(one.to_line()) == one


@pytest.mark.parametrize("line", ['{"producer": "p"}', '{"nothing": 1}', "[]", "no json"])
def test_a_line_that_is_no_entry_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        Entry.from_line(line)


def test_lost_is_what_was_acknowledged_and_is_not_there() -> None:
    found = compare([entry("a", 0), entry("b", 1), entry("c", 2, FAILED), entry("d", 3, UNKNOWN)], ["a"])
    assert [one.value for one in found.lost] == ["b"]


def test_what_was_not_acknowledged_may_be_there() -> None:
    found = compare([entry("a", 0), entry("b", 1, UNKNOWN), entry("c", 2, FAILED)], ["a", "b", "c", "x"])
    assert found.unasked == ("b", "c")
    assert found.foreign == ("x",)
    assert not found.lost


def test_twice_elsewhere_and_out_of_order() -> None:
    entries = [entry("a", 0, offset=0), entry("b", 1, offset=1), entry("c", 2, offset=2), entry("z", 0, producer="q")]
    found = compare(entries, ["b", "z", "a", "a", "c"])
    assert found.duplicated == ("a",)
    assert [one.value for one in found.moved] == ["a", "b", "c"]
    assert found.reordered == (("b", "a"),)


@pytest.mark.parametrize("missing", [None, -1001, -1])
def test_an_acknowledgement_may_have_no_offset(missing: int | None) -> None:
    """A record the broker had already: held against the log by its value alone."""
    found = compare([entry("a", 0, offset=offset_told(missing)), entry("b", 1, offset=offset_told(1))], ["a", "b"])
    assert (found.lost, found.moved) == ((), ())
    assert offset_told(0) == 0
