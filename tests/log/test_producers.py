"""Idempotent and transactional producers: no gap, no repeat, and nothing of an aborted transaction for the careful."""

from __future__ import annotations

from typing import Any

import pytest

from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batch, flush, marker, open_log, produced, values_in
from tidelog.errors import CorruptionError, ErrorCode, KafkaError
from tidelog.log import Log, names, producer_snapshot
from tidelog.log.producer_state import KnownBatch, Producer
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.batch import iterate_batches

FILE = f"{DIRECTORY}/{names.file_name(0, names.LOG_SUFFIX)}"
MAX = (1 << 31) - 1


def refused(log: Log, data: memoryview, **how: Any) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(KafkaError) as raised:
        append(log, data, **how)
    assert log.log_end_offset == end
    return raised.value.code


def test_the_last_five_batches_may_come_again(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    firsts = [append(log, produced(1, 2 * number, count=2)) for number in range(6)]
    size = log.size_bytes
    for number in range(1, 6):
        appended = log.append_as_leader(produced(1, 2 * number, count=2), 0, NOW)
        assert appended.duplicate
        assert (appended.first_offset, appended.last_offset) == (firsts[number], firsts[number] + 1)
    assert log.size_bytes == size
    assert refused(log, produced(1, 0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # the sixth last
    assert refused(log, produced(1, 10, count=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # half of a known one
    assert refused(log, produced(1, 13)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # a gap
    assert append(log, produced(1, 12)) == 12


def test_producers_do_not_see_each_other(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    for producer_id in range(3):
        append(log, produced(producer_id, 0))
        append(log, produced(producer_id, 1))
    append(log, batch())
    assert refused(log, produced(0, 3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, produced(2, 2)) == 7


def test_epochs_fence(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, produced(1, 0, epoch=1))
    assert refused(log, produced(1, 1, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, produced(1, 1, epoch=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, produced(1, 0, epoch=2)) == 1
    assert refused(log, produced(1, 1, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_nobody_knows_may_start_anywhere(disk: SimulatedDisk) -> None:
    """All it wrote may have been deleted by retention; refusing it would stop it for good."""
    log = open_log(disk)
    assert append(log, produced(1, 4_711)) == 0
    assert append(log, produced(1, 4_712)) == 1


def test_sequences_wrap(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, produced(1, MAX - 1, count=4))  # MAX - 1, MAX, 0, 1
    assert log.append_as_leader(produced(1, MAX - 1, count=4), 0, NOW).duplicate
    assert append(log, produced(1, 2)) == 4
    append(log, produced(2, MAX))
    assert append(log, produced(2, 0)) == 6


def test_idle_producers_are_forgotten(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, produced(1, 0, timestamp=5), now_ms=NOW)  # an old record does not make an idle producer
    append(log, produced(2, 0, is_transactional=True))
    assert log.expire_producers(NOW + DAY_MS - 1) == 0
    assert log.expire_producers(NOW + DAY_MS) == 1, "one with an open transaction is kept"
    assert append(log, produced(1, 9)) == 2


@pytest.mark.parametrize("clean", [True, False])
def test_what_is_known_survives_a_stop(disk: SimulatedDisk, clean: bool) -> None:
    """Segments roll in between: a snapshot is taken at each, and the rest is read from the log."""
    log = open_log(disk, segment_bytes=600)
    for number in range(20):
        append(log, produced(1, number))
        append(
            log,
            produced(2, 3 * number, count=3, epoch=number // 10)
            if number < 10
            else produced(2, 3 * (number - 10), count=3, epoch=1),
        )
    recovery_point = 0
    if clean:
        log.close()
        recovery_point = flush(log)
    disk.kill()
    log = open_log(disk, clean=clean, recovery_point=recovery_point, segment_bytes=600)
    for number in (15, 19):
        assert log.append_as_leader(produced(1, number), 0, NOW).duplicate
    assert log.append_as_leader(produced(2, 27, count=3, epoch=1), 0, NOW).duplicate
    assert refused(log, produced(2, 30, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, produced(1, 21)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, produced(1, 20)) == 80
    offsets = [segment.base_offset for segment in log.segments]
    snapshots = [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert set(offsets[1:]) <= set(snapshots)
    assert len(set(snapshots) - set(offsets)) <= 1, "only useful snapshots are kept"


def test_a_ruined_snapshot_costs_only_time(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=600)
    for number in range(20):
        append(log, produced(1, number))
    log.close()
    flush(log)
    for name in [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")][1:]:
        disk.flip_bit(f"{DIRECTORY}/{name}", 12)
    disk.kill()
    log = open_log(disk, clean=True, segment_bytes=600)
    assert log.append_as_leader(produced(1, 19), 0, NOW).duplicate
    assert append(log, produced(1, 20)) == 20


def test_a_snapshot_of_before_the_first_segment_is_not_believed(disk: SimulatedDisk) -> None:
    """What came between is gone with the segments before the log's start: a producer that is known to have written less
    than it has is refused for ever, where one that is not known at all is not.
    """
    log = open_log(disk)
    for data in (produced(1, 0), produced(1, 1), batch(), batch()):
        append(log, data)
        log.roll(NOW)
    disk.kill()
    for offset in (2, 3, 4):
        disk.replace(f"{DIRECTORY}/{offset:020d}.snapshot", b"")  # by a power loss
    again = open_log(disk, clean=False, start=3)
    assert again.first_segment_offset == 3
    assert append(again, produced(1, 2)) == 4


def test_what_was_deleted_is_known_while_its_file_is_there(disk: SimulatedDisk) -> None:
    """A cut forgot the producer's batch below the log's start and knew its marker: the next one was out of order, and
    the same one again was no repeat.
    """
    log = open_log(disk)
    append(log, produced(1, 0, is_transactional=True))
    append(log, marker(1, commit=True), is_internal=True)
    append(log)
    log.raise_log_start(1)
    log.truncate_to(2)
    assert log.append_as_leader(produced(1, 0, is_transactional=True), 0, NOW).duplicate
    assert append(log, produced(1, 1, is_transactional=True)) == 2


def test_truncation_takes_producers_back(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=600)
    for number in range(20):
        append(log, produced(1, number))
    assert log.truncate_to(12) == 12
    assert refused(log, produced(1, 13)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(produced(1, 11), 0, NOW).duplicate
    assert append(log, produced(1, 12)) == 12


def test_a_follower_knows_what_its_leader_knew(disk: SimulatedDisk) -> None:
    leader = open_log(disk)
    for number in range(7):
        append(leader, produced(1, number))
    follower = open_log(SimulatedDisk())
    data = b"".join(part.read() for part in leader.read(0, 1 << 20, up_to_offset=7).parts)
    follower.append_as_follower(memoryview(data), now_ms=NOW)
    for number in range(2, 7):
        assert follower.append_as_leader(produced(1, number), 1, NOW).duplicate
    assert append(follower, produced(1, 7), epoch=1) == 7


def test_the_snapshot_is_kafkas() -> None:
    producers = [
        Producer(7, 2, 5, NOW, -1, [KnownBatch(3, 4, 100, 101, NOW)]),
        Producer(8, 0, -1, 9, 55, []),
    ]
    data = producer_snapshot.to_bytes(producers)
    assert data[:2] == b"\0\x01"
    assert data[6:10] == b"\0\0\0\x02"
    assert len(data) == 10 + 2 * 46
    assert (
        data[10:56].hex() == f"0000000000000007000200000004000000000000006500000001{NOW:016x}00000005ffffffffffffffff"
    )
    found = producer_snapshot.from_bytes(data)
    assert [(one.producer_id, one.epoch, one.batches, one.transaction_first_offset) for one in found] == [
        (7, 2, [KnownBatch(3, 4, 100, 101, NOW)], -1),
        (8, 0, [], 55),
    ]
    for ruined in (b"", data[:-1], data + b"\0", b"\0\x02" + data[2:], data[:30] + b"\1" + data[31:]):
        with pytest.raises(CorruptionError):
            producer_snapshot.from_bytes(ruined)


# --- transactions ---


def transactional(producer_id: int, sequence: int, epoch: int = 0) -> memoryview:
    return produced(producer_id, sequence, epoch=epoch, is_transactional=True)


def end(log: Log, producer_id: int, *, commit: bool, **how: int) -> int:
    version = how.pop("transaction_version", 0)
    data = marker(producer_id, commit=commit, **how)
    return append(log, data, is_internal=True, transaction_version=version)


def test_the_last_stable_offset_waits_for_open_transactions(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log)
    assert log.last_stable_offset(1) == 1
    append(log, transactional(1, 0))  # 1
    append(log, transactional(2, 0))  # 2
    append(log)  # 3
    assert log.last_stable_offset(4) == 1
    assert log.last_stable_offset(1) == 1
    end(log, 1, commit=True)  # 4
    assert log.last_stable_offset(4) == 1, "its marker is above the high watermark"
    assert log.last_stable_offset(5) == 2
    end(log, 2, commit=False)  # 5
    assert log.last_stable_offset(6) == 6
    assert log.producers.has_open_transaction(1) is False


def test_aborted_transactions_are_found_where_they_matter(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=400)
    ends = {}
    for number in range(12):
        append(log, transactional(1, number))
        append(log, transactional(2, number))
        ends[number] = end(log, 1, commit=number % 2 == 0)
    end(log, 2, commit=False)
    assert len(log.segments) > 3
    aborted = log.aborted_transactions(0, log.log_end_offset)
    assert [(one.producer_id, one.last_offset) for one in aborted] == [
        *((1, ends[number]) for number in range(1, 12, 2)),
        (2, log.log_end_offset - 1),
    ]
    first = log.aborted_transactions(0, 5)
    assert [(one.producer_id, one.first_offset) for one in first] == [(1, 3), (2, 1)]
    assert [one.producer_id for one in log.aborted_transactions(34, 36)] == [1, 2]
    assert log.aborted_transactions(0, 1) == []


@pytest.mark.parametrize("how", ["clean", "killed", "cut"])
def test_transactions_survive_a_stop(disk: SimulatedDisk, how: str) -> None:
    log = open_log(disk, segment_bytes=500)
    for number in range(8):
        append(log, transactional(1, number))
        end(log, 1, commit=number % 2 == 0)
    append(log, transactional(2, 0))  # 16, left open
    for _ in range(4):
        append(log)
    before = log.aborted_transactions(0, 99)
    stable = log.last_stable_offset(21)
    assert stable == 16
    if how == "cut":
        append(log, transactional(1, 8))
        end(log, 1, commit=False)
        log.truncate_to(21)
    else:
        if how == "clean":
            log.close()
            flush(log)
        disk.kill()
        log = open_log(disk, clean=how == "clean", segment_bytes=500)
    assert log.aborted_transactions(0, 99) == before
    assert log.last_stable_offset(21) == stable
    end(log, 2, commit=False)
    assert log.aborted_transactions(16, 17)[0].producer_id == 2
    assert log.last_stable_offset(22) == 22


@pytest.mark.parametrize("rotten", [1, 2, 3])
def test_a_cut_does_not_believe_what_rot_has_made_of_a_batch(disk: SimulatedDisk, rotten: int) -> None:
    """Of a marker it makes a record: its transaction would be open for ever, and hold up whoever might find the rot."""
    log = open_log(disk)
    append(log, transactional(1, 0))
    end(log, 1, commit=True)
    append(log, transactional(2, 0))
    append(log)
    append(log)
    positions = [header.position for header in iterate_batches(disk.read_file(FILE))]
    attributes, producer_id = 22, 50
    bit = {1: (attributes, 5), 2: (producer_id, 3), 3: (producer_id, 7)}[rotten]
    disk.flip_bit(FILE, positions[rotten] + bit[0], bit[1])
    with pytest.raises(CorruptionError):
        log.truncate_to(4)


def test_writes_outside_an_open_transaction_are_refused(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, transactional(1, 0))
    assert refused(log, produced(1, 1)) is ErrorCode.INVALID_TXN_STATE
    end(log, 1, commit=True)
    assert append(log, produced(1, 1)) == 2


def test_markers_of_zombies_are_refused(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    append(log, transactional(1, 0, epoch=3))
    old = marker(1, commit=True, epoch=2)
    assert refused(log, old, is_internal=True) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 1, commit=True, epoch=3, coordinator_epoch=5)
    zombie = marker(1, commit=True, epoch=3, coordinator_epoch=4)
    assert refused(log, zombie, is_internal=True) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_transactions_v2_raise_the_epoch_with_every_marker(disk: SimulatedDisk) -> None:
    """KIP-890: a marker of the epoch that is still writing is late; a repeated one is harmless."""
    log = open_log(disk)
    append(log, transactional(1, 0, epoch=3))
    late = marker(1, commit=True, epoch=3)
    assert refused(log, late, is_internal=True, transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 1, commit=True, epoch=4, transaction_version=2)
    end(log, 1, commit=True, epoch=4, transaction_version=2)
    assert refused(log, transactional(1, 1, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(log, transactional(1, 0, epoch=4)) == 3
    assert len(values_in(log)) == 2


def test_a_marker_without_a_transaction_changes_nothing_for_readers(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    end(log, 1, commit=False)
    assert log.last_stable_offset(1) == 1
    assert log.aborted_transactions(0, 1) == []


def test_a_marker_a_follower_cannot_read_is_stored_all_the_same(disk: SimulatedDisk) -> None:
    log = open_log(disk)
    data = batch([b"?"], key=b"x", is_control=True, producer_id=1, producer_epoch=0, partition_leader_epoch=0)
    log.append_as_follower(data)
    assert log.log_end_offset == 1
    disk.kill()
    assert open_log(disk, clean=False).log_end_offset == 1
