"""Compaction: what must stay, what must go, and that offsets, sequences and readers survive it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.log.cleaning import (
    append_all,
    append_transactional,
    clean,
    committed_records,
    keyed,
    last_values,
    open_compacted,
    records_in,
)
from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batch, batches_in, marker
from tidelog.errors import ErrorCode, KafkaError
from tidelog.log import clean_job, clean_measure, names
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import crc32c, iterate_records


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", b"5")])
    log.roll(NOW)
    append_all(log, [(b"c", b"6")])  # in the active segment, which is left alone
    result = clean(log)
    assert [(one.offset, one.key, one.value) for one in records_in(log)] == [
        (2, b"a", b"3"),
        (3, b"c", b"4"),
        (4, b"b", b"5"),
        (5, b"c", b"6"),
    ]
    assert (result.clean_to, result.records_read, result.records_kept) == (5, 5, 3)
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)


def test_batches_that_lose_nothing_keep_their_bytes_and_such_segments_their_files() -> None:
    disk = SimulatedDisk()
    log = open_compacted(disk)
    for compression in range(5):
        log.append_as_leader(
            keyed((b"k%d" % compression, b"v"), (b"m%d" % compression, b"v"), compression=compression), 0, NOW
        )
    log.roll(NOW)
    before = disk.read_file(f"{DIRECTORY}/{names.file_name(0, '.log')}")
    writes = disk.writes
    result = clean(log)
    assert result.cleaned == []
    assert disk.writes == writes + 2  # the two flushes of the directory
    assert disk.read_file(f"{DIRECTORY}/{names.file_name(0, '.log')}") == before
    append_all(log, [(b"m1", b"new")])
    log.roll(NOW)
    clean(log, result.clean_to)
    after = [bytes(header.data) for header in batches_in(log)]
    kept = [bytes(header.data) for header in batches_in(log) if header.base_offset not in (2, 10)]
    assert len(after) == 6
    assert all(one in before for one in kept)


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_that_loses_records_keeps_all_else(compression: int) -> None:
    log = open_compacted(SimulatedDisk())
    how = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 10}
    data = keyed((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), timestamp=NOW - 5, compression=compression, **how)
    log.append_as_leader(data, 4, NOW)
    append(log, keyed((b"a", b"4"), (b"c", b"5")), epoch=4)
    log.roll(NOW)
    clean(log)
    first = batches_in(log)[0]
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 2, 1)
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (7, 3, 10, 12)
    assert (first.partition_leader_epoch, first.compression, first.max_timestamp) == (4, compression, NOW - 5)
    assert first.crc_matches()
    assert [(one.offset, one.key, one.value, one.timestamp) for one in iterate_records(first)] == [
        (1, b"b", b"2", NOW - 5)
    ]


def test_long_keys_are_told_apart() -> None:
    log = open_compacted(SimulatedDisk())
    keys = [b"x" * 63, b"x" * 64, b"x" * 65, b"x" * 5000, b"", b"y" * 128]
    append_all(log, [(key, b"1") for key in keys] + [(key, b"2") for key in keys])
    log.roll(NOW)
    clean(log)
    assert [(one.key, one.value) for one in records_in(log)] == [(key, b"2") for key in keys]


def test_a_tombstone_stays_until_its_horizon_and_then_goes_with_all_before_it() -> None:
    log = open_compacted(SimulatedDisk(), delete_retention_ms=DAY_MS)
    append_all(log, [(b"a", b"1"), (b"b", b"1"), (b"a", None)])
    log.roll(NOW)
    first = clean(log)
    assert [(one.key, one.value) for one in records_in(log)] == [(b"b", b"1"), (b"a", None)]
    tombstone = batches_in(log)[-1]
    assert tombstone.delete_horizon_ms == NOW + DAY_MS
    assert next(iterate_records(tombstone)).timestamp == NOW
    assert tombstone.max_timestamp == NOW
    append_all(log, [(b"c", b"1")])
    log.roll(NOW)
    second = clean(log, first.clean_to, now_ms=NOW + DAY_MS - 1)
    assert (b"a", None) in [(one.key, one.value) for one in records_in(log)]
    assert next(one for one in batches_in(log) if one.base_offset == 2).delete_horizon_ms == NOW + DAY_MS
    append_all(log, [(b"c", b"2")])
    log.roll(NOW)
    clean(log, second.clean_to, now_ms=NOW + DAY_MS)
    assert [(one.key, one.value) for one in records_in(log)] == [(b"b", b"1"), (b"c", b"2")]


def test_records_without_a_key_go_and_are_refused_from_then_on() -> None:
    """A topic may be compacted only after it has been written to."""
    disk = SimulatedDisk()
    log = open_compacted(disk, cleanup_policy=("delete",))
    append(log, batch(3, key=None))
    append(log, keyed((b"a", b"1")))
    log.roll(NOW)
    log.config = log.config.replace(cleanup_policy=("compact",))
    clean(log)
    assert [(one.offset, one.key) for one in records_in(log)] == [(3, b"a")]
    with pytest.raises(KafkaError) as refused:
        append(log, batch(1, key=None))
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_batch_that_nobody_can_read_is_kept_as_it_is() -> None:
    """Nobody knows what it says, so nobody may drop it, nor anything for its sake."""
    log = open_compacted(SimulatedDisk(), cleanup_policy=("delete",))
    append(log, keyed((b"a", b"1")))
    garbled = bytearray(keyed((b"a", b"2"), (b"b", b"3")))
    garbled[61] += 2  # the length of the first record
    garbled[17:21] = crc32c(bytes(garbled[21:]), 0).to_bytes(4, "big")
    append(log, memoryview(garbled))
    append(log, keyed((b"c", b"3"), (b"c", b"4")))
    log.roll(NOW)
    log.config = log.config.replace(cleanup_policy=("compact",))
    result = clean(log)
    assert result.unreadable_batches == 1
    assert [header.base_offset for header in batches_in(log)] == [0, 1, 3]
    assert batches_in(log)[1].data[12:] == garbled[12:] or batches_in(log)[1].data[21:] == garbled[21:]
    assert [one.value for one in iterate_records(batches_in(log)[0])] == [b"1"]


@pytest.mark.parametrize("place", [4, 70, 75, 100])
def test_damage_is_found_and_nothing_is_done(place: int) -> None:
    """Of the records, which the checksum covers, and of an offset, which it does not."""
    disk = SimulatedDisk()
    log = open_compacted(disk)
    append_all(log, [(b"a", b"1"), (b"a", b"2")])
    log.roll(NOW)
    disk.flip_bit(f"{DIRECTORY}/{names.file_name(0, '.log')}", place)
    cleanable = clean_measure.measure(log, None, log.log_end_offset, NOW)
    request, _ = clean_measure.request_for(log, cleanable, now_ms=NOW, max_keys=100, io_bytes=4096)
    result = clean_job.clean(disk, request)
    assert "damaged" in result.damage or "out of order" in result.damage
    assert result.cleaned == ()


# --- producers ---


def test_a_producers_last_sequence_survives_and_restarts_know_it() -> None:
    disk = SimulatedDisk()
    log = open_compacted(disk)
    for sequence in range(5):
        log.append_as_leader(
            keyed((b"same", b"%d" % sequence), producer_id=1, producer_epoch=0, base_sequence=sequence), 0, NOW
        )
    append_all(log, [(b"same", b"last"), (b"more", b"1")])
    log.roll(NOW)
    clean(log)
    headers = batches_in(log)
    assert [(one.base_offset, one.record_count) for one in headers] == [(0, 0), (4, 0), (5, 1), (6, 1)]
    for name in disk.list(DIRECTORY):
        if name.endswith(names.SNAPSHOT_SUFFIX):
            disk.delete(f"{DIRECTORY}/{name}")
    disk.kill()
    again = open_compacted(disk, clean=False)
    assert again.producers.producers[1].last_sequence == 4
    repeated = keyed((b"same", b"4"), producer_id=1, producer_epoch=0, base_sequence=4)
    assert again.append_as_leader(repeated, 0, NOW).duplicate
    following = keyed((b"same", b"5"), producer_id=1, producer_epoch=0, base_sequence=5)
    assert again.append_as_leader(following, 0, NOW).first_offset == 7


def test_an_expired_producer_is_not_kept() -> None:
    log = open_compacted(SimulatedDisk())
    log.append_as_leader(keyed((b"a", b"1"), producer_id=1, producer_epoch=0, base_sequence=0), 0, NOW)
    append_all(log, [(b"a", b"2")])
    log.roll(NOW)
    log.expire_producers(NOW + 2 * DAY_MS)
    clean(log)
    assert [(header.base_offset, header.producer_id) for header in batches_in(log)] == [(0, -1), (1, -1)]


# --- transactions ---


def test_aborted_records_go_and_never_supersede() -> None:
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"a", b"old")])
    append_transactional(log, 1, 0, (b"a", b"aborted"))
    append(log, marker(1, commit=False), is_internal=True)
    append_transactional(log, 2, 0, (b"b", b"committed"))
    append(log, marker(2, commit=True), is_internal=True)
    log.roll(NOW)
    clean(log)
    assert [(one.key, one.value) for one in committed_records(log)] == [(b"a", b"old"), (b"b", b"committed")]
    assert [(one.key, one.value) for one in records_in(log)] == [(b"a", b"old"), (b"b", b"committed")]


def test_markers_stay_until_their_records_are_gone_and_their_horizon_has_passed() -> None:
    log = open_compacted(SimulatedDisk(), delete_retention_ms=DAY_MS)
    append_transactional(log, 1, 0, (b"a", b"1"))
    append(log, marker(1, commit=True), is_internal=True)
    append_transactional(log, 2, 0, (b"x", b"aborted"))
    append(log, marker(2, commit=False), is_internal=True)
    log.roll(NOW)
    log.expire_producers(NOW + 2 * DAY_MS)
    clean_to = clean(log).clean_to

    def markers() -> list[tuple[int, int | None]]:
        return [
            (one.base_offset, one.delete_horizon_ms) for one in batches_in(log) if one.is_control and one.record_count
        ]

    assert markers() == [(1, None), (3, None)]
    assert len(log.aborted_transactions(0, 4)) == 1
    append_all(log, [(b"a", b"2")])
    log.roll(NOW)
    clean_to = clean(log, clean_to).clean_to
    assert markers() == [(1, None), (3, NOW + DAY_MS)]  # the commit's record went only now
    assert log.aborted_transactions(0, 4) == []
    append_all(log, [(b"a", b"3")])
    log.roll(NOW)
    clean_to = clean(log, clean_to, now_ms=NOW + 1).clean_to
    assert markers() == [(1, NOW + 1 + DAY_MS), (3, NOW + DAY_MS)]
    append_all(log, [(b"a", b"4")])
    log.roll(NOW)
    clean_to = clean(log, clean_to, now_ms=NOW + DAY_MS).clean_to
    assert markers() == [(1, NOW + 1 + DAY_MS)]
    append_all(log, [(b"a", b"5")])
    log.roll(NOW)
    clean(log, clean_to, now_ms=NOW + DAY_MS + 1)
    assert markers() == []


def test_a_transaction_that_ends_behind_what_is_compacted() -> None:
    """Its records are below the last stable offset, its marker is in the active segment."""
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"a", b"old")])
    append_transactional(log, 1, 0, (b"a", b"aborted"))
    log.roll(NOW)
    append(log, marker(1, commit=False), is_internal=True)
    clean(log)
    assert [(one.key, one.value) for one in records_in(log)] == [(b"a", b"old")]
    assert [one.value for one in committed_records(log)] == [b"old"]


def test_an_open_transaction_is_not_touched() -> None:
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"a", b"1"), (b"a", b"2")])
    log.roll(NOW)
    append_transactional(log, 1, 0, (b"a", b"3"))
    append_all(log, [(b"a", b"4")])
    log.roll(NOW)
    clean(log)
    assert [one.value for one in records_in(log)] == [b"2", b"3", b"4"]


# --- how far, and when ---


def test_nothing_above_the_watermark_or_younger_than_the_lag_is_touched() -> None:
    log = open_compacted(SimulatedDisk(), min_compaction_lag_ms=1_000)
    append_all(log, [(b"a", b"%d" % number) for number in range(6)], roll_every=2)
    assert clean_measure.measure(log, None, 3, NOW + 2_000).end_offset == 2
    assert clean_measure.measure(log, None, 4, NOW + 2_000).end_offset == 4
    assert clean_measure.measure(log, None, 6, NOW + 2_000).end_offset == 6
    assert clean_measure.measure(log, None, 6, NOW + 999).end_offset == 0
    log.append_as_leader(keyed((b"a", b"1"), timestamp=NOW + 1_500), 0, NOW + 1_500)
    log.roll(NOW)
    assert clean_measure.measure(log, None, 7, NOW + 2_000).end_offset == 6
    assert clean_measure.measure(log, None, 7, NOW + 2_500).end_offset == 7


def test_how_dirty_a_log_is() -> None:
    log = open_compacted(SimulatedDisk(), max_compaction_lag_ms=10_000)
    append_all(log, [(b"a", b"%d" % number) for number in range(8)], roll_every=2)
    size = log.segments[0].size
    measured = clean_measure.measure(log, None, 8, NOW)
    assert (measured.first_dirty_offset, measured.clean_bytes, measured.dirty_bytes) == (0, 0, 4 * size)
    measured = clean_measure.measure(log, 6, 8, NOW)
    assert (measured.clean_bytes, measured.dirty_bytes, measured.dirty_ratio) == (3 * size, size, 0.25)
    assert not measured.is_overdue
    assert clean_measure.measure(log, 6, 8, NOW + 10_001).is_overdue
    assert not clean_measure.measure(log, 8, 8, NOW + 10_001).is_overdue
    # A checkpoint beyond the log, or before its start, says nothing of it.
    assert clean_measure.measure(log, 9, 8, NOW).first_dirty_offset == 0
    log.raise_log_start(3)
    assert clean_measure.measure(log, 1, 8, NOW).first_dirty_offset == 3


def test_a_compacted_log_rolls_in_time_for_its_largest_lag() -> None:
    log = open_compacted(SimulatedDisk(), max_compaction_lag_ms=5_000)
    append_all(log, [(b"a", b"1")])
    assert not log.roll_if_due(NOW + 5_000)
    assert log.roll_if_due(NOW + 5_001)


def test_small_segments_are_merged_and_none_ends_before_the_next_begins() -> None:
    disk = SimulatedDisk()
    log = open_compacted(disk, segment_bytes=2_000)
    append_all(log, [(b"k%d" % (number % 5), b"x" * 100) for number in range(60)], roll_every=4)
    log.roll(NOW)
    result = clean(log)
    assert [one.source_count > 1 for one in result.cleaned] == [True] * len(result.cleaned)
    segments = log.segments
    assert len(segments) < 10
    for segment, following in pairwise(segments):
        *_, (_, last) = segment.headers_from(0)
        assert last.next_offset == following.base_offset
    while len(log.segments) > 2:
        result = clean(log, result.clean_to, now_ms=NOW)
        if not result.cleaned:
            break
    assert len(records_in(log)) == 5
    assert log.segments[0].base_offset == 0
    assert not [name for name in disk.list(DIRECTORY) if name.endswith((".cleaned", ".swap", ".deleted"))]


@pytest.mark.parametrize("max_keys", [1, 3, 10])
def test_more_keys_than_memory_takes_several_rounds(max_keys: int) -> None:
    log = open_compacted(SimulatedDisk())
    pairs = [(b"k%d" % (number % 12), b"%d" % number) for number in range(60)]
    append_all(log, pairs, roll_every=7)
    log.roll(NOW)
    clean_to, rounds = 0, 0
    while clean_to < 60:
        result = clean(log, clean_to, max_keys=max_keys)
        assert result.clean_to > clean_to, "every round must get on"
        clean_to, rounds = result.clean_to, rounds + 1
        assert last_values(records_in(log)) == {b"k%d" % key: b"%d" % (48 + key) for key in range(12)}
    assert rounds > 1
    assert [one.offset for one in records_in(log)] == list(range(48, 60))


# --- reading around gaps ---


def test_reading_from_an_offset_that_is_gone() -> None:
    log = open_compacted(SimulatedDisk(), index_interval_bytes=0)
    append_all(log, [(b"k%d" % (number % 4), b"%d" % number) for number in range(40)], roll_every=10)
    clean(log)
    offsets = [header.base_offset for header in batches_in(log)]
    for offset in range(40):
        for limit in (40, 38):
            read = log.read(offset, 1, up_to_offset=limit)
            expected = next((one for one in offsets if one >= offset), 40)
            if expected < limit:
                assert read.first_offset == expected
                assert read.next_offset > offset
            else:
                assert not read.parts
    found = log.offset_for_timestamp(NOW, 40)
    assert found is not None
    assert found.offset == records_in(log)[0].offset
    newest = log.max_timestamp_offset()
    assert newest is not None
    assert newest.offset in {one.offset for one in records_in(log)}


def test_the_newest_time_is_never_that_of_a_batch_without_records() -> None:
    log = open_compacted(SimulatedDisk())
    append(log, keyed((b"b", b"1"), timestamp=NOW))
    append(log, keyed((b"a", b"1"), timestamp=NOW + 50, producer_id=1, producer_epoch=0, base_sequence=0))
    log.roll(NOW)
    append(log, keyed((b"a", b"2"), timestamp=NOW + 10))
    log.roll(NOW)
    log.config = log.config.replace(segment_bytes=100)  # not merged
    clean(log)
    newest = log.max_timestamp_offset()
    assert newest is not None
    assert (newest.offset, newest.timestamp) == (2, NOW + 10)


def test_a_follower_copies_a_compacted_log_with_its_gaps() -> None:
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"k%d" % (number % 3), b"%d" % number) for number in range(30)], roll_every=10)
    clean(log)
    copy = open_compacted(SimulatedDisk(), segment_bytes=200)
    offset = 0
    while offset < log.log_end_offset:
        read = log.read(offset, 150, up_to_offset=log.log_end_offset)
        copy.append_as_follower(memoryview(b"".join(part.read() for part in read.parts)), NOW)
        offset = copy.log_end_offset
    assert [(one.offset, one.value) for one in records_in(copy)] == [(one.offset, one.value) for one in records_in(log)]
    disk = copy.storage
    assert isinstance(disk, SimulatedDisk)
    disk.kill()
    again = open_compacted(disk, clean=False, segment_bytes=200)
    assert again.log_end_offset == 30
    assert last_values(records_in(again)) == last_values(records_in(log))


def test_readers_keep_what_they_were_given_while_the_files_are_replaced() -> None:
    log = open_compacted(SimulatedDisk())
    append_all(log, [(b"a", b"%d" % number) for number in range(10)])
    log.roll(NOW)
    read = log.read(0, 1 << 20, up_to_offset=10)
    before = [part.read() for part in read.parts]
    clean(log)
    assert all(part.valid for part in read.parts)
    assert [part.read() for part in read.parts] == before
