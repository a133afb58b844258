"""Reading by offset and by time: whole batches, never beyond the bound, always getting on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.log.support import NOW, append, batch, batches_in, batches_of, open_log, values_in
from tidelog.errors import ErrorCode, KafkaError
from tidelog.log import Log
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import Record, build_batch


def filled(disk: SimulatedDisk, count: int = 60, **settings: Any) -> Log:
    log = open_log(disk, **{"segment_bytes": 2_000, "index_interval_bytes": 150, **settings})
    chance = Random(7)
    for number in range(count):
        append(log, batch(chance.randint(1, 4), timestamp=NOW + number))
    return log


def test_every_offset_can_be_read_from(disk: SimulatedDisk) -> None:
    """In any order, so that neither bookmarks nor recent positions help or mislead."""
    log = filled(disk)
    layout = [(header.base_offset, header.last_offset, header.size) for header in batches_in(log)]
    assert len(log.segments) > 2
    offsets = list(range(log.log_end_offset))
    Random(1).shuffle(offsets)
    for offset in offsets:
        base, last, size = next(one for one in layout if one[1] >= offset)
        read = log.read(offset, 0, up_to_offset=log.log_end_offset)
        assert (read.first_offset, read.next_offset, read.size) == (base, last + 1, size)
        assert batches_of(read)[0].base_offset == base, "a read in the middle of a batch starts with the batch"


@pytest.mark.parametrize("max_bytes", [1, 100, 333, 1_000, 5_000, 1 << 20])
def test_limits_hold_and_all_comes(disk: SimulatedDisk, max_bytes: int) -> None:
    log = filled(disk)
    everything = b"".join(bytes(header.data) for header in batches_in(log))
    offset, data = 0, b""
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes, up_to_offset=log.log_end_offset)
        headers = batches_of(read)
        assert headers[0].base_offset == read.first_offset == offset
        assert headers[-1].next_offset == read.next_offset
        assert read.size <= max_bytes or len(headers) == 1
        data += b"".join(bytes(header.data) for header in headers)
        offset = read.next_offset
    assert data == everything


def test_nothing_beyond_the_bound_is_read(disk: SimulatedDisk) -> None:
    log = filled(disk)
    headers = batches_in(log)
    bounds = list(range(log.log_end_offset + 1))
    Random(2).shuffle(bounds)
    for bound in bounds:
        read = log.read(0, 1 << 20, up_to_offset=bound)
        whole = [header for header in headers if header.last_offset < bound]
        assert read.size == sum(header.size for header in whole)
        assert read.next_offset == (whole[-1].next_offset if whole else 0)
    assert log.read(0, 1 << 20, up_to_offset=10**9).next_offset == log.log_end_offset


def test_a_batch_larger_than_the_limit_comes_only_when_wanted(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, batch([b"x" * 500]))
    append(log, batch([b"y"]))
    assert log.read(0, 10, up_to_offset=2).next_offset == 1
    read = log.read(0, 10, up_to_offset=2, at_least_one=False)
    assert (read.parts, read.size, read.next_offset) == ([], 0, 0)
    read = log.read(1, 10, up_to_offset=2, at_least_one=False)
    assert (read.size, read.next_offset) == (0, 1)
    assert log.read(0, 0, up_to_offset=1).next_offset == 1


def test_the_ends_of_the_log(disk: SimulatedDisk) -> None:
    log = filled(disk, 10)
    end = log.log_end_offset
    assert log.read(end, 100, up_to_offset=end).size == 0
    assert log.read(3, 100, up_to_offset=2).size == 0
    log.raise_log_start(3)
    for offset in (2, end + 1, -1):
        with pytest.raises(KafkaError) as raised:
            log.read(offset, 100, up_to_offset=end)
        assert raised.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError):
        log.raise_log_start(end + 1)
    log.raise_log_start(1)
    assert log.log_start_offset == 3, "it never goes back"


def test_a_sequential_reader_costs_no_look_up(disk: SimulatedDisk) -> None:
    """The second reader of a log finds its place without the index: counted in reads of the disk."""
    log = filled(disk, 300, segment_bytes=1 << 20, index_interval_bytes=1_000)
    opened: list[str] = []
    check = disk.check

    def counting(operation: str, path: str) -> None:
        opened.append(operation)
        check(operation, path)

    disk.check = counting  # type: ignore[method-assign]
    read = log.read(0, 2_000, up_to_offset=100)
    bound_known = len(opened)
    for _ in range(5):
        read = log.read(read.next_offset, 2_000, up_to_offset=100)
    assert len(opened) - bound_known <= 5 * 5
    opened.clear()
    log.read(log.log_end_offset - 2, 1_000, up_to_offset=log.log_end_offset)
    log.read(log.log_end_offset - 2, 1_000, up_to_offset=log.log_end_offset - 1)
    assert opened == [], "at the end of the log everything is known"


def test_slices_know_of_a_cut(disk: SimulatedDisk) -> None:
    log = filled(disk)
    before = log.read(0, 1 << 20, up_to_offset=log.log_end_offset).parts
    log.truncate_to(log.segments[1].base_offset + 1)
    assert [part.valid for part in before] == [True, False, *[False] * (len(before) - 2)]
    after = log.read(0, 1 << 20, up_to_offset=log.log_end_offset).parts
    assert all(part.valid for part in after)


def test_how_much_is_new(disk: SimulatedDisk) -> None:
    log = filled(disk)
    headers = batches_in(log)
    last = headers[-1]
    assert log.bytes_between(last.base_offset, log.log_end_offset) == last.size
    assert log.bytes_between(0, log.log_end_offset) == log.size_bytes
    assert log.bytes_between(5, 5) == 0
    assert abs(log.bytes_between(20, log.log_end_offset) - sum(h.size for h in headers if h.base_offset >= 20)) < 1_000


# --- by time ---


def test_the_first_record_at_or_after_a_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=2_000, index_interval_bytes=150)
    chance = Random(3)
    times: list[int] = []
    for number in range(80):
        mine = [NOW + 10 * number + chance.randint(-60, 60) for _ in range(chance.randint(1, 4))]
        records = [Record(index, at, b"k", b"v") for index, at in enumerate(mine)]
        append(log, memoryview(bytearray(build_batch(records, compression=chance.choice((0, 4))))), epoch=number // 40)
        times += mine
    for target in range(NOW - 70, NOW + 870, 7):
        wanted = next((index for index, at in enumerate(times) if at >= target), None)
        found = log.offset_for_timestamp(target, log.log_end_offset)
        assert (found.offset if found else None) == wanted
        if found:
            assert found.timestamp == times[found.offset]
            assert found.leader_epoch == log.epoch_history.epoch_for_offset(found.offset)
            assert log.offset_for_timestamp(target, found.offset) is None, "not above the bound"
    for start in range(0, len(times), 3):  # in the middle of batches too
        for limit in (len(times), len(times) - 9):
            log.raise_log_start(start)
            wanted_time = max(times[start:limit], default=None)
            found = log.max_timestamp_offset(limit)
            if found is None:
                assert limit - start < 4
            elif limit == len(times):
                assert found.timestamp == wanted_time
                assert found.offset == start + times[start:].index(found.timestamp)
            else:
                assert found.offset < limit


def test_records_without_a_time(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    assert log.max_timestamp_offset() is None
    append(log, batch(3, timestamp=-1))
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0, 3) is None
    append(log, batch(1, timestamp=5))
    found = log.offset_for_timestamp(0, 4)
    assert found is not None
    assert found.offset == 3


def test_a_batch_nobody_can_read_is_still_found(disk: SimulatedDisk) -> None:
    """The broker does not look inside; a client's broken batch must not stop another's look-up."""
    log = open_log(disk)
    data = batch(5, compression=1)
    data[65:75] = b"\xff" * 10
    from tidelog.wire.crc import crc32c

    data[17:21] = crc32c(data[21:], 0).to_bytes(4, "big")
    append(log, data)
    found = log.offset_for_timestamp(NOW, 5)
    assert found is not None
    assert (found.offset, found.timestamp) == (0, NOW)


# --- damage met while reading ---


def test_a_ruined_index_is_made_anew(disk: SimulatedDisk) -> None:
    log = filled(disk)
    values = values_in(log)
    log.close()
    names = [name for name in disk.list("topic-0") if name.endswith((".index", ".timeindex"))]
    for ruin in (b"", b"\xff" * 24, b"\0" * 2_400, b"\0\0\0\x01\0\0\0\x07" * 3):
        disk.kill()
        for name in names:
            disk.replace(f"topic-0/{name}", ruin)
        log = open_log(disk)
        assert values_in(log) == values
        for offset in range(0, log.log_end_offset, 5):
            assert batches_of(log.read(offset, 500, up_to_offset=log.log_end_offset))[0].base_offset <= offset
    for name in names:
        disk.delete(f"topic-0/{name}")
    disk.kill()
    log = open_log(disk)
    assert values_in(log) == values
    log.close()


def test_damage_in_a_batch_is_told_to_the_reader(disk: SimulatedDisk) -> None:
    log = filled(disk)
    header = batches_in(log)[5]
    position = sum(each.size for each in batches_in(log)[:5])
    disk.flip_bit("topic-0/00000000000000000000.log", position + 16, 3)  # its magic
    with pytest.raises(KafkaError) as raised:
        log.read(header.base_offset, 10, up_to_offset=log.log_end_offset)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
