"""Appending as leader and as follower: what is stored, and what is refused before a byte is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batch, batches_in, open_log, produced, values_in
from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.log import Log, UnexpectedOffset
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import Record, build_batch, iterate_records
from tidelog.wire.crc import crc32c


def refused(log: Log, data: memoryview, **how: Any) -> ErrorCode:
    """The code an append is refused with; nothing may have been written."""
    before, size = log.log_end_offset, log.active_segment.file.size
    with pytest.raises(KafkaError) as raised:
        append(log, data, **how)
    assert (log.log_end_offset, log.active_segment.file.size) == (before, size)
    return raised.value.code


def resealed(data: memoryview) -> memoryview:
    """The batch with a checksum that fits it again."""
    data[17:21] = crc32c(data[21:], 0).to_bytes(4, "big")
    return data


def changed(position: int, value: bytes) -> memoryview:
    data = batch(3)
    data[position : position + len(value)] = value
    return resealed(data)


def test_batches_are_stored_as_received_but_for_offset_and_epoch(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    sent = [batch(3), batch([b"x", None]), batch(1, key=None)]
    originals = [bytes(data) for data in sent]
    appended = [log.append_as_leader(data, 4, NOW) for data in sent]
    assert [(one.first_offset, one.last_offset) for one in appended] == [(0, 2), (3, 4), (5, 5)]
    assert [one.log_append_time_ms for one in appended] == [-1, -1, -1]
    assert [one.max_timestamp for one in appended] == [NOW] * 3
    for header, original in zip(batches_in(log), originals, strict=True):
        assert header.crc_matches()
        assert header.partition_leader_epoch == 4
        assert bytes(header.data[8:12]) == original[8:12]
        assert bytes(header.data[16:]) == original[16:]
    assert disk.read_file(f"{DIRECTORY}/00000000000000000000.log") == b"".join(sent)
    assert log.epochs == [(4, 0)]
    assert disk.read_file(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n4 0\n"


@pytest.mark.parametrize("compression", range(5))
def test_every_codec_is_kept(disk: SimulatedDisk, compression: int) -> None:
    log = open_log(disk)
    append(log, batch(20, compression=compression))
    assert batches_in(log)[0].compression == compression
    assert values_in(log) == [b"value-%d" % index for index in range(20)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (memoryview(bytearray()), ErrorCode.CORRUPT_MESSAGE),
        (batch(3)[:40], ErrorCode.CORRUPT_MESSAGE),
        (batch(3)[:-1], ErrorCode.INVALID_RECORD),
        (memoryview(bytearray(batch(1)) + bytearray(batch(1))), ErrorCode.INVALID_RECORD),
        (memoryview(bytearray(batch(1)) + b"\0"), ErrorCode.INVALID_RECORD),
        (changed(16, b"\x01"), ErrorCode.INVALID_RECORD),  # message format 1
        (changed(16, b"\x03"), ErrorCode.CORRUPT_MESSAGE),
        (changed(0, b"\0\0\0\0\0\0\0\x05"), ErrorCode.INVALID_RECORD),  # an offset of the client's own
        (changed(22, b"\x07"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (changed(22, b"\x08"), ErrorCode.INVALID_TIMESTAMP),  # log append time is the broker's to set
        (changed(22, b"\x20"), ErrorCode.INVALID_RECORD),  # a control batch
        (changed(23, b"\0\0\0\x03"), ErrorCode.INVALID_RECORD),  # spans more offsets than it has records
        (changed(23, b"\xff\xff\xff\xff"), ErrorCode.INVALID_RECORD),
        (changed(57, b"\0\0\0\0"), ErrorCode.INVALID_RECORD),
        (changed(43, b"\0\0\0\0\0\0\0\x07"), ErrorCode.INVALID_RECORD),  # a producer without a sequence
        (changed(23, b"\x7f\xff\xff\xfe" + bytes(batch(3)[27:57]) + b"\x7f\xff\xff\xff"), ErrorCode.INVALID_RECORD),
        (batch(1, timestamp=NOW + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_what_a_client_may_not_send(disk: SimulatedDisk, data: memoryview, code: ErrorCode) -> None:
    log = open_log(disk)
    assert refused(log, data) is code
    assert append(log) == 0, "the log goes on"


def test_a_flipped_bit_anywhere_is_noticed(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    for position in range(8, len(batch(3))):
        if position in range(12, 16):
            continue  # the leader's epoch is the broker's to set
        data = batch(3)
        data[position] ^= 0x40
        refused(log, data)


def test_sizes_are_bounded(disk: SimulatedDisk) -> None:
    log = open_log(disk, max_message_bytes=1_000, segment_bytes=2_000)
    assert refused(log, batch([b"x" * 1_000])) is ErrorCode.MESSAGE_TOO_LARGE
    log.config = type(log.config)(max_message_bytes=10_000, segment_bytes=2_000)
    assert refused(log, batch([b"x" * 3_000])) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert append(log, batch([b"x" * 1_000])) == 0, "changed settings are in force"


def test_old_records_where_that_is_bounded(disk: SimulatedDisk) -> None:
    log = open_log(disk, message_timestamp_before_max_ms=1_000)
    assert refused(log, batch(1, timestamp=NOW - 1_001)) is ErrorCode.INVALID_TIMESTAMP
    assert append(log, batch(1, timestamp=NOW - 1_000)) == 0
    assert append(log, batch(1, timestamp=-1)) == 1, "no timestamp is no old timestamp"


def test_log_append_time_replaces_the_clients(disk: SimulatedDisk) -> None:
    log = open_log(disk, message_timestamp_type="LogAppendTime")
    appended = log.append_as_leader(batch(2, timestamp=5), 0, NOW + 7)
    assert (appended.log_append_time_ms, appended.max_timestamp) == (NOW + 7, NOW + 7)
    (header,) = batches_in(log)
    assert header.crc_matches()
    assert [record.timestamp for record in iterate_records(header)] == [NOW + 7] * 2


def test_records_are_looked_at_where_that_is_asked_for(disk: SimulatedDisk) -> None:
    misnumbered = build_batch([Record(0, NOW, b"k", b"v"), Record(2, NOW, b"k", b"v")], last_offset=1)
    log = open_log(disk)
    assert append(log, memoryview(bytearray(misnumbered))) == 0, "by default a batch is not opened"
    log = open_log(SimulatedDisk(), record_validation_enable=True)
    assert refused(log, memoryview(bytearray(misnumbered))) is ErrorCode.INVALID_RECORD
    late = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW + DAY_MS, b"k", b"v")], max_timestamp=NOW)
    assert refused(log, memoryview(bytearray(late))) is ErrorCode.INVALID_TIMESTAMP
    assert append(log, batch(3, compression=2)) == 0


def test_a_compacted_topic_needs_keys(disk: SimulatedDisk) -> None:
    log = open_log(disk, cleanup_policy=("compact",))
    assert refused(log, batch(2, key=None)) is ErrorCode.INVALID_RECORD
    assert refused(log, batch(2, key=None, compression=4)) is ErrorCode.INVALID_RECORD
    broken = batch(5, compression=1)
    broken[70:80] = b"\xff" * 10
    assert refused(log, resealed(broken)) is ErrorCode.INVALID_RECORD
    assert append(log, batch(2)) == 0


@pytest.mark.parametrize(("kind", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)])
def test_compression_of_the_topics_own(disk: SimulatedDisk, kind: str, codec: int) -> None:
    log = open_log(disk, compression_type=kind, message_timestamp_type="LogAppendTime")
    for sent in range(5):
        append(log, produced(9, 10 * sent, count=10, compression=sent))
    for number, header in enumerate(batches_in(log)):
        assert header.compression == codec
        assert header.crc_matches()
        assert (header.producer_id, header.base_sequence, header.base_offset) == (9, 10 * number, 10 * number)
        assert [record.offset for record in iterate_records(header)] == list(range(10 * number, 10 * number + 10))
        assert header.max_timestamp == NOW
        assert header.is_log_append_time


def test_recompression_may_make_a_batch_too_large(disk: SimulatedDisk) -> None:
    log = open_log(disk, compression_type="uncompressed", max_message_bytes=1_000)
    assert refused(log, batch([b"x" * 2_000], compression=4)) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_nodes_own_batches_come_several_at_once(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log)
    data = memoryview(bytearray(batch(2)) + bytearray(batch(3)))
    appended = log.append_as_leader(data, 1, NOW, is_internal=True)
    assert (appended.first_offset, appended.last_offset) == (1, 5)
    assert [header.base_offset for header in batches_in(log)] == [0, 1, 3]
    assert log.epochs == [(0, 0), (1, 1)]


# --- followers ---


def leader_bytes(disk: SimulatedDisk, log: Log) -> bytes:
    return b"".join(bytes(header.data) for header in batches_in(log))


def test_a_follower_has_the_leaders_bytes(disk: SimulatedDisk) -> None:
    leader = open_log(disk, segment_bytes=1_000)
    for number in range(30):
        append(leader, batch(3), epoch=number // 10)
    data = leader_bytes(disk, leader)
    other = SimulatedDisk()
    follower = open_log(other, segment_bytes=700)
    appended = follower.append_as_follower(memoryview(data))
    assert (appended.first_offset, appended.last_offset, appended.size) == (0, 89, len(data))
    assert leader_bytes(other, follower) == data
    assert follower.epochs == leader.epochs == [(0, 0), (1, 30), (2, 60)]
    assert len(follower.segments) > 3
    assert all(segment.size <= 700 for segment in follower.segments)


def test_a_batch_cut_short_is_left_for_the_next_fetch(disk: SimulatedDisk) -> None:
    leader = open_log(disk)
    for _ in range(3):
        append(leader)
    data = leader_bytes(disk, leader)
    size = len(data) // 3
    for cut in range(size, 2 * size):
        follower = open_log(SimulatedDisk())
        appended = follower.append_as_follower(memoryview(data)[:cut])
        assert (appended.size, follower.log_end_offset) == (size, 1)
    assert open_log(SimulatedDisk()).append_as_follower(memoryview(data)[: size - 1]).size == 0


def test_a_follower_appends_nothing_that_is_damaged(disk: SimulatedDisk) -> None:
    leader = open_log(disk)
    for _ in range(3):
        append(leader)
    data = bytearray(leader_bytes(disk, leader))
    data[-1] ^= 1
    follower = open_log(SimulatedDisk())
    with pytest.raises(KafkaError) as raised:
        follower.append_as_follower(memoryview(data))
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0
    twice = leader_bytes(disk, leader) * 2
    with pytest.raises(KafkaError, match="where 3 was next"):
        follower.append_as_follower(memoryview(twice))
    assert follower.log_end_offset == 0


def test_a_follower_notices_batches_before_its_end(disk: SimulatedDisk) -> None:
    leader = open_log(disk)
    append(leader, batch(10))
    follower = open_log(SimulatedDisk(), start=5)
    with pytest.raises(UnexpectedOffset) as raised:
        follower.append_as_follower(memoryview(leader_bytes(disk, leader)))
    assert (raised.value.first_offset, raised.value.log_end_offset) == (0, 5)
    follower.truncate_fully_and_start_at(raised.value.first_offset)
    follower.append_as_follower(memoryview(leader_bytes(disk, leader)))
    assert follower.log_end_offset == 10


def test_gaps_and_empty_batches_of_a_compacted_leader_are_kept(disk: SimulatedDisk) -> None:
    data = b"".join(
        (
            build_batch([Record(3, NOW, b"a", b"1")], base_offset=0, last_offset=4, partition_leader_epoch=1),
            build_batch(
                [],
                base_offset=20,
                last_offset=24,
                max_timestamp=NOW,
                partition_leader_epoch=1,
                producer_id=5,
                producer_epoch=2,
                base_sequence=0,
            ),
            build_batch([Record(40, NOW, b"b", b"2")], partition_leader_epoch=1),
        )
    )
    follower = open_log(disk, cleanup_policy=("compact",))
    follower.append_as_follower(memoryview(data))
    assert follower.log_end_offset == 41
    assert values_in(follower) == [b"1", b"2"]
    # A read bound in a gap still gives what is whole below it.
    for bound, wanted in ((4, []), (5, [0]), (13, [0]), (24, [0]), (25, [0, 20]), (41, [0, 20, 40])):
        read = follower.read(0, 1 << 20, up_to_offset=bound)
        assert [part.position for part in read.parts] == ([0] if wanted else [])
        assert read.next_offset <= bound
        assert read.size == sum(header.size for header in batches_in(follower) if header.base_offset in wanted)
    disk.kill()
    again = open_log(disk, clean=False, cleanup_policy=("compact",))
    assert again.log_end_offset == 41
    assert values_in(again) == [b"1", b"2"]


# --- disks that fail ---


@pytest.mark.parametrize("operation", ["append", "replace", "open"])
def test_after_a_failed_append_the_log_is_what_its_file_is(disk: SimulatedDisk, operation: str) -> None:
    """Every call of the kind fails once: in the middle of an append, a roll, a new epoch."""
    log = open_log(disk, segment_bytes=400)
    end = failures = 0
    for number in range(40):
        disk.fail(operation, times=1)
        try:
            append(log, batch(2), epoch=number // 3)
            end += 2
        except StorageError:
            failures += 1
        disk.heal()
        assert log.log_end_offset == end
        assert sum(segment.file.size for segment in log.segments) == log.size_bytes
        assert [header.base_offset for header in batches_in(log)] == list(range(0, end, 2))
        assert all(start < end for _, start in log.epochs)
        if number % 3:
            append(log, batch(2), epoch=number // 3)
            end += 2
    assert failures > 3
    epochs = log.epochs
    disk.kill()
    log = open_log(disk, clean=False)
    assert (log.log_end_offset, log.epochs) == (end, epochs)


def _fits(log: Log) -> bool:
    try:
        append(log, batch(5))
    except StorageError:
        return False
    return True


def test_a_full_disk_takes_nothing_that_was_there() -> None:
    disk = SimulatedDisk(capacity_bytes=5_000)
    log = open_log(disk)
    count = 5 * next(number for number in range(1_000) if not _fits(log))
    assert log.log_end_offset == count
    assert len(values_in(log)) == count


def test_rewriting_checks(disk: SimulatedDisk) -> None:
    """The checks of one request's partition come before its first byte, for each of several batches."""
    log = open_log(disk)
    good, bad = bytearray(batch(1)), bytearray(batch(1))
    bad[-1] ^= 1
    check: Callable[..., ErrorCode] = refused
    assert check(log, memoryview(good + bad), is_internal=True) is ErrorCode.CORRUPT_MESSAGE
