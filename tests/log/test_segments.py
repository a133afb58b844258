"""Rolling, retention and cutting: which files there are, and which records are gone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batch, batches_in, flush, open_log, values_in
from tidelog.log import Log
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import Record, build_batch

SIZE = len(batch(1))


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# --- rolling ---


def test_rolls_by_size(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=3 * SIZE)
    for _ in range(10):
        append(log)
    assert bases(log) == [0, 3, 6, 9]
    assert [segment.size for segment in log.segments] == [3 * SIZE] * 3 + [SIZE]
    names = disk.list(DIRECTORY)
    assert "00000000000000000006.snapshot" in names
    assert "00000000000000000000.txnindex" not in names


def test_rolls_by_the_records_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_ms=1_000, message_timestamp_after_max_ms=DAY_MS)
    for at in (0, 999, 1_000, 1_001, 1_500, 2_001, 2_002):
        append(log, batch(1, timestamp=NOW + at))
    assert bases(log) == [0, 3, 6]


def test_rolls_by_the_clock_where_records_have_no_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_ms=1_000)
    for at in (0, 1_000, 1_001):
        append(log, batch(1, timestamp=-1), now_ms=NOW + at)
    assert bases(log) == [0, 2]


def test_rolls_when_asked_and_due(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_ms=1_000)
    assert not log.roll_if_due(NOW + 5_000), "an empty segment stays"
    append(log)
    assert not log.roll_if_due(NOW + 1_000)
    assert log.roll_if_due(NOW + 1_001)
    assert bases(log) == [0, 1]
    log.roll(NOW)
    assert bases(log) == [0, 1]


def test_partitions_made_together_do_not_roll_together(disk: SimulatedDisk) -> None:
    due = set()
    for number in range(8):
        log = Log.open(
            disk,
            f"t-{number}",
            open_log(disk, segment_ms=10_000, segment_jitter_ms=5_000).config,
            recovery_point=0,
            log_start_offset=0,
            clean=True,
            now_ms=NOW,
            producer_expiry_ms=DAY_MS,
        )
        append(log)
        due.add(next(at for at in range(10_002) if log.roll_if_due(NOW + at)))
    assert len(due) > 4
    assert min(due) > 5_000


def test_rolls_when_an_index_is_full(disk: SimulatedDisk) -> None:
    log = open_log(disk, index_interval_bytes=0, segment_index_bytes=60)
    for number in range(12):
        append(log, batch(1, timestamp=NOW + number))
    # Five entries of twelve bytes, of which one is kept for sealing; the first batch has none.
    assert bases(log) == [0, 5, 10]
    assert disk.size(f"{DIRECTORY}/00000000000000000000.timeindex") == 4 * 12


def test_rolls_before_offsets_outgrow_an_index(disk: SimulatedDisk) -> None:
    follower = open_log(disk, cleanup_policy=("compact",))
    for offset in (0, 100, (1 << 31) - 1, 1 << 31, (1 << 31) + 5, 1 << 33):
        data = build_batch([Record(offset, NOW, b"k", b"v")], partition_leader_epoch=0)
        follower.append_as_follower(memoryview(data))
    assert bases(follower) == [0, 1 << 31, 1 << 33]
    disk.kill()
    again = open_log(disk, clean=False, is_whole=True, cleanup_policy=("compact",))
    assert [header.base_offset for header in batches_in(again)][-1] == 1 << 33


def test_the_time_index_of_a_sealed_segment_ends_with_its_newest(disk: SimulatedDisk) -> None:
    log = open_log(disk, index_interval_bytes=1)
    for at in (5, 9, 7, 8):
        append(log, batch(1, timestamp=NOW + at))
    log.roll(NOW)
    data = disk.read_file(f"{DIRECTORY}/00000000000000000000.timeindex")
    entries = [(int.from_bytes(data[at : at + 8], "big") - NOW, data[at + 11]) for at in range(0, len(data), 12)]
    assert entries == [(9, 1)]
    append(log, batch(1, timestamp=NOW + 20))
    log.close()
    data = disk.read_file(f"{DIRECTORY}/00000000000000000004.timeindex")
    assert int.from_bytes(data[-12:-4], "big") == NOW + 20


# --- retention ---


def segmented(disk: SimulatedDisk, count: int = 10, **settings: Any) -> Log:
    """One record a segment, a second apart; the newest segment is empty."""
    log = open_log(disk, **settings)
    for number in range(count):
        append(log, batch(1, timestamp=NOW + 1_000 * number))
        log.roll(NOW)
    return log


def test_retention_by_time(disk: SimulatedDisk) -> None:
    log = segmented(disk, retention_ms=5_000)
    assert log.delete_old_segments(NOW + 5_000, 10) == []
    paths = log.delete_old_segments(NOW + 7_500, 10)
    assert log.log_start_offset == 3
    assert bases(log) == list(range(3, 11))
    assert all(path.endswith(".deleted") and disk.exists(path) for path in paths)
    assert [path.split("/")[1][:20].lstrip("0") for path in paths if ".log" in path] == ["", "1", "2"]
    assert f"{DIRECTORY}/00000000000000000002.snapshot.deleted" in paths
    assert values_in(log) == [b"value-0"] * 7
    assert log.epochs == [(0, 3)]


def test_retention_by_size(disk: SimulatedDisk) -> None:
    log = segmented(disk, retention_bytes=4 * SIZE, retention_ms=-1)
    log.delete_old_segments(NOW, 10)
    assert log.log_start_offset == 6
    assert log.size_bytes == 4 * SIZE
    assert log.delete_old_segments(NOW, 10) == []


def test_nothing_above_the_high_watermark_is_deleted(disk: SimulatedDisk) -> None:
    log = segmented(disk, retention_ms=1)
    log.delete_old_segments(NOW + DAY_MS, 4)
    assert log.log_start_offset == 4


def test_all_records_may_be_too_old(disk: SimulatedDisk) -> None:
    log = open_log(disk, retention_ms=1_000)
    append(log, batch(5))
    assert log.delete_old_segments(NOW + 1_000, 5) == []
    assert log.delete_old_segments(NOW + 1_001, 4) == []
    assert log.delete_old_segments(NOW + 1_001, 5) != []
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (5, 5, [5])
    assert log.delete_old_segments(NOW + DAY_MS, 5) == [], "an empty segment stays"
    assert append(log) == 5


def test_records_without_a_time_age_by_their_file(disk: SimulatedDisk) -> None:
    disk.now_ms = NOW
    log = open_log(disk, retention_ms=1_000)
    append(log, batch(1, timestamp=-1))
    assert log.delete_old_segments(NOW + 1_000, 1) == []
    assert log.delete_old_segments(NOW + 1_001, 1) != []


def test_deleted_records_free_whole_segments(disk: SimulatedDisk) -> None:
    log = segmented(disk, cleanup_policy=("compact",), retention_ms=1)
    assert log.delete_old_segments(NOW + DAY_MS, 10) == [], "a compacted topic keeps old records"
    log.raise_log_start(4)
    assert log.delete_old_segments(NOW, 10) != []
    assert bases(log)[0] == 4


def test_slices_outlive_retention(disk: SimulatedDisk) -> None:
    log = segmented(disk, retention_ms=1_000)
    parts = log.read(0, 1, up_to_offset=10).parts
    for path in log.delete_old_segments(NOW + DAY_MS, 10):
        disk.delete(path)
    assert parts[0].valid
    assert len(parts[0].read()) == SIZE


def test_what_was_deleted_stays_deleted(disk: SimulatedDisk) -> None:
    log = segmented(disk, retention_ms=5_000)
    log.delete_old_segments(NOW + 7_500, 10)
    disk.kill()
    log = open_log(disk, clean=False)
    assert log.log_start_offset == 3
    assert not any(name.endswith(".deleted") for name in disk.list(DIRECTORY))


# --- cutting ---


@pytest.mark.parametrize("offset", range(31))
def test_cutting_anywhere(disk: SimulatedDisk, offset: int) -> None:
    log = open_log(disk, segment_bytes=700, index_interval_bytes=100)
    for number in range(10):
        append(
            log, batch([b"%d-%d" % (number, index) for index in range(3)], timestamp=NOW + number), epoch=number // 4
        )
    end = log.truncate_to(offset)
    assert end == log.log_end_offset == (30 if offset == 30 else 3 * (offset // 3))
    assert values_in(log) == [b"%d-%d" % (number // 3, number % 3) for number in range(end)]
    assert all(start < end for _, start in log.epochs)
    newest = log.max_timestamp_offset()
    assert (newest.timestamp if newest else None) == (NOW + end // 3 - 1 if end else None)
    assert append(log, batch([b"new"], timestamp=NOW), epoch=9) == end
    assert log.end_offset_for_epoch(9) == (9, end + 1)
    for clean in (True, False):
        if clean:
            log.close()
        disk.kill()
        log = open_log(disk, clean=clean, segment_bytes=700)
        assert values_in(log)[-1] == b"new"
        assert log.log_end_offset == end + 1


def test_starting_anew_elsewhere(disk: SimulatedDisk) -> None:
    log = segmented(disk)
    slices = log.read(0, 1 << 20, up_to_offset=10).parts
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, bases(log), log.epochs) == (100, 100, [100], [])
    assert not any(part.valid for part in slices)
    assert append(log, epoch=5) == 100
    log.close()
    disk.kill()
    log = open_log(disk)
    assert (log.log_start_offset, log.log_end_offset, log.epochs) == (100, 101, [(5, 100)])
    log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


# --- what must be flushed ---


def test_a_flush_covers_what_was_written(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=3 * SIZE)
    assert log.recovery_point == 0
    for _ in range(8):
        append(log)
    assert log.has_closed_segments_to_flush
    files, directories = log.files_to_flush()
    paths = {file.path.removeprefix(f"{DIRECTORY}/") for file in files}
    assert {"00000000000000000000.log", "00000000000000000003.timeindex", "00000000000000000006.log"} <= paths
    assert {"leader-epoch-checkpoint", "00000000000000000003.snapshot"} <= paths
    assert "00000000000000000006.index" not in paths, "the indexes of the active segment can be made anew"
    assert directories == [DIRECTORY, ""]
    append(log)
    log.flushed_through(8)
    assert log.recovery_point == 8
    assert not log.has_closed_segments_to_flush
    files, directories = log.files_to_flush()
    assert [file.path for file in files] == [f"{DIRECTORY}/00000000000000000006.log"]
    assert directories == []
    log.flushed_through(9)
    assert log.files_to_flush() == ([], [])


def test_a_flush_does_not_count_for_what_was_appended_after_a_cut(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    for _ in range(10):
        append(log)
    log.files_to_flush()
    log.truncate_to(4)
    for _ in range(8):
        append(log, epoch=1)
    log.flushed_through(10)
    assert log.recovery_point == 4
    assert flush(log) == 12
    log.truncate_to(6)
    assert log.recovery_point == 6


def test_flushes_may_overlap(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log)
    log.files_to_flush()
    append(log)
    log.files_to_flush()
    log.flushed_through(2)
    log.flushed_through(1)
    assert log.recovery_point == 2


def test_a_closed_log_has_all_files_kafka_looks_for(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    assert disk.list(DIRECTORY) == ["00000000000000000000.log"], "an idle partition is one file until it is closed"
    log.close()
    flush(log)
    segment = ["00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex"]
    assert disk.list(DIRECTORY) == segment
    disk.kill()
    log = open_log(disk)
    append(log)
    log.close()
    assert disk.list(DIRECTORY) == [*segment, "00000000000000000001.snapshot", "leader-epoch-checkpoint"]


def test_closing_twice_and_without_news_writes_nothing(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log)
    log.close()
    flush(log)
    disk.kill()
    log = open_log(disk, recovery_point=1)
    assert log.recovery_point == 1
    writes = disk.writes
    log.close()
    log.close()
    assert log.files_to_flush() == ([], [])
    assert disk.writes == writes
