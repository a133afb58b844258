"""Compaction takes records, never where an epoch began: whoever copies or recovers the log must know it."""

from __future__ import annotations

import pytest

from tests.log.cleaning import (
    append_all,
    append_transactional,
    clean,
    keyed,
    open_compacted,
    records_in,
)
from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batches_in, marker
from tidelog.log import names
from tidelog.log.epochs import EpochHistory
from tidelog.sim.disk import SimulatedDisk


def test_where_epochs_began_is_known_to_whoever_copies_or_recovers_the_log() -> None:
    """Else records of a former leader that were never committed are kept where the gap is (seed 900053 of a hunt)."""
    disk = SimulatedDisk()
    log = open_compacted(disk)
    cleaned_to = None
    for epoch in range(5):
        for number in range(3):
            append(log, keyed((b"same", b"%d" % number)), epoch=epoch)
        log.roll(NOW)
        cleaned_to = clean(log, cleaned_to).clean_to
    assert [(one.offset, one.value) for one in records_in(log)] == [(14, b"2")]
    began = [(0, 0), (1, 3), (2, 6), (3, 9), (4, 12)]
    assert log.epochs == began
    copy = open_compacted(SimulatedDisk())
    for header in batches_in(log):
        copy.append_as_follower(memoryview(bytes(header.data)))
    assert (copy.epochs, copy.log_end_offset) == (began, 15)
    log.close()
    disk.delete(f"{DIRECTORY}/{names.EPOCH_CHECKPOINT}")
    assert open_compacted(disk, clean=False).epochs == began


def test_a_log_that_begins_earlier_again_knows_an_epoch_of_which_nothing_is_left_there() -> None:
    """Its head lies before the start. Forgotten, an older epoch would end too late, and who has more of it keeps it."""
    disk = SimulatedDisk()
    log = open_compacted(disk)
    for epoch, key in ((1, b"a"), (2, b"b"), (2, b"c"), (3, b"c"), (3, b"d")):
        append(log, keyed((key, b"%d" % epoch)), epoch=epoch)
    log.roll(NOW)
    clean(log)
    assert [one.base_offset for one in batches_in(log)] == [0, 1, 3, 4]
    append(log, keyed((b"e", b"3")), epoch=3)
    log.raise_log_start(4)
    assert log.epochs == [(3, 4)]
    disk.kill()
    again = open_compacted(disk, clean=False, recovery_point=6, start=2)
    assert again.epochs == [(2, 2), (3, 3)]
    assert again.end_offset_for_epoch(1) == (1, 2)


@pytest.mark.parametrize("how", ["copied", "rebuilt", "recovered"])
def test_an_epoch_whose_head_is_deleted_begins_no_later_than_the_log(how: str) -> None:
    """Else a former leader keeps what it alone had of an older epoch, in the gap that compaction left at the start."""
    disk = SimulatedDisk()
    log = open_compacted(disk, segment_bytes=330)
    append_all(log, [(b"a", b"1"), (b"a", b"2")])
    append(log, keyed((b"head", b"1")), epoch=5)
    log.roll(NOW)
    for key in (b"a", b"b", b"a", b"c"):
        append(log, keyed((key, b"5")), epoch=5)
    log.roll(NOW)
    append(log, keyed((b"a", b"6"), (b"b", b"6")), epoch=5)
    log.roll(NOW)
    clean(log)
    assert [one.base_offset for one in batches_in(log)] == [0, 2, 6, 7]
    assert [one.base_offset for one in log.segments] == [0, 3, 7, 9]
    log.raise_log_start(4)
    for path in log.delete_old_segments(NOW, log.log_end_offset):
        disk.delete(path)
    assert (log.log_start_offset, batches_in(log)[0].base_offset) == (4, 6)
    assert log.epochs == [(5, 4)]
    if how == "copied":
        again = open_compacted(SimulatedDisk())
        again.truncate_fully_and_start_at(4, NOW)
        again.append_as_follower(memoryview(bytes(batches_in(log)[0].data)))
    else:
        log.close()
        if how == "rebuilt":
            disk.delete(f"{DIRECTORY}/{names.EPOCH_CHECKPOINT}")
        else:
            disk.replace(f"{DIRECTORY}/{names.EPOCH_CHECKPOINT}", EpochHistory().to_bytes())
        again = open_compacted(disk, clean=False, start=4)
    assert again.epochs == [(5, 4)]
    assert again.end_offset_for_epoch(0) == (0, 4), "whoever has five records of epoch 0 is to give up the last"


def test_the_head_of_an_epoch_holds_no_marker_back() -> None:
    log = open_compacted(SimulatedDisk(), delete_retention_ms=DAY_MS)
    append_transactional(log, 1, 0, (b"a", b"1"))
    append(log, marker(1, commit=True), is_internal=True)
    append_all(log, [(b"a", b"2")])
    log.roll(NOW)
    log.expire_producers(NOW + 2 * DAY_MS)
    clean(log)
    clean(log, now_ms=NOW + 1)
    clean(log, now_ms=NOW + 2 * DAY_MS)
    headers = [(one.base_offset, one.record_count, one.is_transactional) for one in batches_in(log)]
    assert headers == [(0, 0, False), (2, 1, False)]


def test_epochs_whose_first_records_were_cleaned_away_still_begin_where_they_did() -> None:
    """After a kill the log is read again, but where epochs began within a gap only their checkpoint knows."""
    disk = SimulatedDisk()
    log = open_compacted(disk)
    for epoch, key in ((2, b"kept"), (2, b"a"), (3, b"a"), (4, b"b"), (5, b"a"), (5, b"kept too"), (6, b"b")):
        append(log, keyed((key, b"%d" % epoch)), epoch=epoch)
    log.roll(NOW)
    append(log, keyed((b"a", b"last")), epoch=6)
    log.roll(NOW)
    append(log, keyed((b"c", b"active")), epoch=7)
    epochs = log.epochs
    assert epochs == [(2, 0), (3, 2), (4, 3), (5, 4), (6, 6), (7, 8)]
    clean(log)
    assert [one.offset for one in records_in(log)] == [0, 5, 6, 7, 8]
    disk.kill()
    assert open_compacted(disk, clean=False).epochs == epochs
