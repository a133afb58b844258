"""An index that points wrong makes a consumer miss records or read from the middle of a batch."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptionError, StorageError
from tidelog.log.offset_index import OffsetIndex
from tidelog.log.time_index import TimeIndex
from tidelog.log.txn_index import AbortedTransaction, TransactionIndex
from tidelog.sim.disk import SimulatedDisk

BASE = 1_000


def offset_index(disk: SimulatedDisk, entries: int = 0) -> OffsetIndex:
    index = OffsetIndex(disk, "x.index", BASE)
    index.reset()
    for number in range(entries):
        index.add(BASE + 10 * number + 9, 5_000 * (number + 1))
    return index


def test_the_files_are_kafkas(disk: SimulatedDisk) -> None:
    index = offset_index(disk, 2)
    assert not disk.exists("x.index"), "nothing is written one entry at a time"
    index.write_out()
    assert disk.read_file("x.index").hex() == "00000009000013880000001300002710"
    times = TimeIndex(disk, "x.timeindex", BASE)
    times.reset()
    times.add(258, BASE + 3)
    times.add(258, BASE + 9)  # no newer time, no entry
    times.write_out()
    assert disk.read_file("x.timeindex").hex() == "000000000000010200000003"
    aborted = TransactionIndex(disk, "x.txnindex", exists=False)
    assert aborted.read() == []
    aborted.append(AbortedTransaction(7, 100, 120, 130))
    assert disk.read_file("x.txnindex").hex() == "00000000000000000007000000000000006400000000000000780000000000000082"


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9_000)), max_size=700),
    written=st.integers(0, 700),
    probes=st.lists(st.integers(-10, 40_000), min_size=1, max_size=20),
)
def test_searching_finds_what_a_list_would(steps: list[tuple[int, int]], written: int, probes: list[int]) -> None:
    """Wherever the entries are: in the file, in memory, or in both."""
    index = OffsetIndex(SimulatedDisk(), "x.index", BASE)
    index.reset()
    offsets, positions = [], []
    offset, position = BASE - 1, 0
    for number, (offset_step, position_step) in enumerate(steps):
        offset += offset_step
        position += position_step
        offsets.append(offset)
        positions.append(position)
        index.add(offset, position)
        if number == written:
            index.write_out()
    for probe in probes:
        slot = bisect_right(offsets, BASE + probe) - 1
        assert index.position_for(BASE + probe) == (positions[slot] if slot >= 0 else 0)
        slot = bisect_right(positions, probe * 100) - 1
        assert index.batch_start_at_or_before(probe * 100) == (positions[slot] if slot >= 0 else 0)
    cut = BASE + probes[0]
    index.truncate_to(cut)
    kept = [entry for entry in offsets if entry < cut]
    assert index.entry_count == len(kept)
    assert index.last_position == (positions[len(kept) - 1] if kept else 0)
    index.complete()
    again = OffsetIndex(index.storage, "x.index", BASE)
    assert again.entry_count == len(kept)


def test_time_search_and_cut(disk: SimulatedDisk) -> None:
    times = TimeIndex(disk, "x.timeindex", BASE)
    times.reset()
    assert times.newest == (-1, BASE)
    for number in range(5):
        times.add(100 + 10 * number, BASE + 10 * number)
    times.write_out()
    times.add(200, BASE + 90)
    assert times.newest == (200, BASE + 90)
    assert [times.offset_for(at) - BASE for at in (99, 100, 115, 140, 199, 200, 300)] == [0, 0, 10, 40, 40, 90, 90]
    times.truncate_to(BASE + 40)
    assert times.newest == (130, BASE + 30)


@pytest.mark.parametrize("content", [b"\0" * 7, b"\0" * 80, b"\0\0\0\x09\0\0\x10\0" + b"\0" * 4_000])
def test_what_cannot_be_an_index_is_noticed(disk: SimulatedDisk, content: bytes) -> None:
    """Torn, or left at its full size with zeros by a broker that was killed."""
    disk.replace("x.index", content)
    with pytest.raises(CorruptionError):
        OffsetIndex(disk, "x.index", BASE).check()


def test_a_missing_index_is_noticed(disk: SimulatedDisk) -> None:
    with pytest.raises(CorruptionError, match="missing"):
        OffsetIndex(disk, "x.index", BASE).check()


def test_a_failed_write_loses_no_entry(disk: SimulatedDisk) -> None:
    index = offset_index(disk, 600)
    disk.fail("append", path_prefix="x.index")
    with pytest.raises(StorageError):
        index.write_out()
    disk.heal()
    assert index.position_for(BASE + 5_999) == 3_000_000
    index.write_out()
    assert disk.size("x.index") == 600 * 8


def test_aborted_transactions_are_cut_with_their_markers(disk: SimulatedDisk) -> None:
    aborted = TransactionIndex(disk, "x.txnindex", exists=False)
    entries = [AbortedTransaction(1, 10, 20, 21), AbortedTransaction(2, 15, 30, 31)]
    for entry in entries:
        aborted.append(entry)
    assert aborted.read() == entries
    aborted.truncate_to(30)
    assert aborted.read() == entries[:1]
    aborted.reset()
    assert aborted.read() == []
    disk.replace("x.txnindex", b"\0" * 33)
    with pytest.raises(CorruptionError):
        aborted.read()
