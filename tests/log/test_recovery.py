"""After a kill or a power loss: what was flushed is there, what was torn is not served, and the log goes on."""

from __future__ import annotations

import pytest

from tests.log.support import (
    DIRECTORY,
    NOW,
    append,
    batch,
    batches_in,
    flush,
    marker,
    open_log,
    produced,
    values_in,
)
from tidelog.errors import CorruptionError
from tidelog.log import Log
from tidelog.outbox import Chance
from tidelog.sim.disk import PowerCut, SimulatedDisk

FIRST = f"{DIRECTORY}/00000000000000000000.log"


def cut_file(disk: SimulatedDisk, path: str, size: int) -> None:
    file = disk.open(path)
    file.truncate(size)
    file.close()


def copy_of(disk: SimulatedDisk) -> SimulatedDisk:
    """A disk with the same files, so that each outcome can be tried on its own."""
    other = SimulatedDisk()
    other.make_directory(DIRECTORY)
    for name in disk.list(DIRECTORY):
        other.replace(f"{DIRECTORY}/{name}", disk.read_file(f"{DIRECTORY}/{name}"))
    return other


def written(disk: SimulatedDisk, count: int = 8) -> Log:
    log = open_log(disk, index_interval_bytes=100)
    for number in range(count):
        append(log, batch([b"%d" % number, b"x"], timestamp=NOW + number), epoch=number // 3)
    return log


@pytest.mark.parametrize("is_flushed", [True, False])
def test_the_tail_cut_at_every_byte(is_flushed: bool) -> None:
    """What a torn write leaves, with and without zeros behind it."""
    disk = SimulatedDisk()
    log = written(disk)
    ends = {0: 0}
    position = 0
    for header in batches_in(log):
        position += header.size
        ends[position] = header.next_offset
    recovery_point = 6 if is_flushed else 0
    content = disk.read_file(FIRST)
    for size in range(position + 1):
        for zeros in (0, 1, 70):
            torn = copy_of(disk)
            cut_file(torn, FIRST, size)
            file = torn.open(FIRST)
            file.append(bytes(zeros))
            again = open_log(torn, clean=False, recovery_point=recovery_point, index_interval_bytes=100)
            intact = size
            while intact < min(size + zeros, position) and not content[intact]:
                intact += 1  # a batch may end in zeros itself
            whole = max(each for each in ends if each <= intact)
            end = ends[whole]
            assert again.log_end_offset == end
            assert again.recovery_point == min(recovery_point, end)
            assert torn.size(FIRST) == whole
            assert [header.crc_matches() for header in batches_in(again)] == [True] * (end // 2)
            assert all(start < end for _, start in again.epochs)
            assert again.recovered is not None
            assert again.recovered.is_below_recovery_point == (end < recovery_point and size + zeros > whole)
            assert append(again, batch([b"new"]), epoch=7) == end
            assert values_in(again)[-1] == b"new"


def test_every_flipped_bit_beyond_the_recovery_point_is_cut() -> None:
    disk = SimulatedDisk()
    log = written(disk, 4)
    headers = batches_in(log)
    start = sum(header.size for header in headers[:2])
    for position in range(start, log.size_bytes):
        if position - start in range(12, 16) or position - start - headers[2].size in range(12, 16):
            continue  # the leader epoch is not under the checksum
        torn = copy_of(disk)
        torn.flip_bit(FIRST, position, position % 8)
        again = open_log(torn, clean=False, recovery_point=4)
        damaged = 4 if position < start + headers[2].size else 6
        in_offset = (position - start) % headers[2].size < 8
        assert again.log_end_offset == damaged or (in_offset and again.log_end_offset > damaged)


def test_damage_with_records_behind_it(disk: SimulatedDisk) -> None:
    """Beyond the recovery point the log is cut there, as Kafka does; below it what was flushed is not given up."""
    log = open_log(disk, segment_bytes=400)
    for number in range(20):
        append(log, batch([b"%d" % number]))
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 3
    path = log.segments[1].file.path
    disk.flip_bit(path, 16, 5)
    content = disk.read_file(path)
    disk.kill()
    with pytest.raises(CorruptionError, match="which was flushed"):
        open_log(copy := copy_of(disk), clean=False, recovery_point=bases[1] + 1)
    assert copy.read_file(path) == content, "the files stay as they are"
    assert copy.exists(f"{DIRECTORY}/{bases[3]:020d}.log")
    again = open_log(disk, clean=False, recovery_point=0)
    assert again.log_end_offset == bases[1]
    assert again.recovered is not None
    assert again.recovered.removed_segments == len(bases) - 2
    assert values_in(again) == [b"%d" % number for number in range(bases[1])]
    assert append(again) == bases[1]


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_lost_middle_is_not_served(disk: SimulatedDisk, policy: str) -> None:
    """A power loss may keep a later segment and lose the end of an earlier one: readers must not skip over that, nor
    take it for a gap that compaction left (seed 904410 of a hunt).
    """
    log = open_log(disk, segment_bytes=400, cleanup_policy=(policy,))
    for number in range(20):
        append(log, batch([b"%d" % number]))
    second = log.segments[1]
    disk.kill()
    cut_file(disk, second.path(".log"), 0)
    again = open_log(disk, clean=False, cleanup_policy=(policy,))
    assert again.log_end_offset == second.base_offset


def test_a_flushed_segment_that_lost_its_end_is_noticed(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=400)
    for _ in range(20):
        append(log)
    point = flush(log)
    path = log.segments[1].path(".log")
    disk.kill()
    cut_file(disk, path, disk.size(path) - 1)
    with pytest.raises(CorruptionError):
        open_log(disk, clean=False, recovery_point=point)


def test_a_stop_that_was_not_clean_after_all(disk: SimulatedDisk) -> None:
    log = written(disk)
    log.close()
    disk.kill()
    cut_file(disk, FIRST, disk.size(FIRST) - 1)
    again = open_log(disk, clean=True, recovery_point=16)
    assert again.log_end_offset == 14
    assert again.recovered is not None


def test_what_a_start_has_cut_does_not_come_back_after_a_clean_stop() -> None:
    """Torn bytes in a segment without any others were cut, and the cut was not flushed: a clean stop, and they were
    taken for damage.
    """
    for seed in range(40):
        disk = SimulatedDisk()
        log = open_log(disk)
        append(log)
        log.roll(NOW)
        point = flush(log)
        append(log)
        disk.power_loss(Chance(seed))
        again = open_log(disk, clean=False, recovery_point=point)
        end = again.log_end_offset
        again.close()
        flush(again)
        disk.power_loss(Chance(seed + 1))
        assert open_log(disk, is_whole=True).recovered is None
        assert open_log(disk).log_end_offset == end


@pytest.mark.parametrize("bit", range(3))
def test_rot_in_the_last_batch_does_not_move_the_end_after_a_clean_stop(disk: SimulatedDisk, bit: int) -> None:
    """Where the log ends was taken from a header that nobody had checked: led by such a replica, others were cut to it,
    or it gave an offset a second time.
    """
    log = written(disk)
    log.close()
    disk.kill()
    last_offset_delta_end = disk.size(FIRST) - batches_in(log)[-1].size + 26
    disk.flip_bit(FIRST, last_offset_delta_end, bit)
    with pytest.raises(CorruptionError, match="which no stop has torn"):
        open_log(copy_of(disk), clean=True, recovery_point=16, is_whole=True)
    assert open_log(disk, clean=True, recovery_point=16).log_end_offset == 14


def test_indexes_are_made_anew(disk: SimulatedDisk) -> None:
    """Byte for byte what they were, and for a broker that was killed whatever its preallocated files hold."""
    log = open_log(disk, segment_bytes=2_000, index_interval_bytes=100)
    for number in range(60):
        append(
            log,
            batch(
                2,
                timestamp=NOW + number % 7,
                is_transactional=True,
                producer_id=1,
                producer_epoch=0,
                base_sequence=2 * number,
            ),
        )
        if number % 3 == 2:
            append(log, marker(1, commit=number % 2 == 0), is_internal=True)
    log.roll(NOW)
    names = [name for name in disk.list(DIRECTORY) if name.endswith("index")]
    assert len([name for name in names if name.endswith(".txnindex")]) > 2
    before = {name: disk.read_file(f"{DIRECTORY}/{name}") for name in names}
    for ruin in (None, b"", bytes(10_000), b"\xff" * 9):
        disk.kill()
        for name in names:
            if ruin is None:
                disk.delete(f"{DIRECTORY}/{name}")
            else:
                disk.replace(f"{DIRECTORY}/{name}", ruin)
        again = open_log(disk, clean=False, segment_bytes=2_000, index_interval_bytes=100)
        assert {name: disk.read_file(f"{DIRECTORY}/{name}") for name in names} == before
        again.close()


@pytest.mark.parametrize("content", [None, b"", b"0\n1\n9", b"\xff"])
def test_a_lost_epoch_checkpoint_is_read_from_the_batches(disk: SimulatedDisk, content: bytes | None) -> None:
    log = open_log(disk, segment_bytes=300)
    for number in range(12):
        append(log, epoch=number // 5)
    epochs = log.epochs
    assert epochs == [(0, 0), (1, 5), (2, 10)]
    point = flush(log)
    disk.kill()
    if content is None:
        disk.delete(f"{DIRECTORY}/leader-epoch-checkpoint")
    else:
        disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", content)
    again = open_log(disk, clean=False, recovery_point=point)
    assert again.epochs == epochs
    assert disk.read_file(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n3\n0 0\n1 5\n2 10\n"


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("start", "epochs"), [(16, [(4, 16)]), (12, [(4, 12)]), (5, [(2, 5), (4, 10)])])
def test_a_log_that_begins_earlier_again_knows_its_epochs_from_there_on(
    disk: SimulatedDisk, clean: bool, start: int, epochs: list[tuple[int, int]]
) -> None:
    """Records were deleted, and an unclean stop forgot so; the epochs before were forgotten for good, and a follower
    kept records of one of them that its leader had never had (seed 930324 of a hunt).
    """
    log = open_log(disk, segment_bytes=400)
    for number in range(20):
        append(log, batch([b"%d" % number]), epoch=2 if number < 10 else 4)
    log.raise_log_start(16)
    point = flush(log)
    assert log.epochs == [(4, 16)]
    log.close()
    disk.kill()
    again = open_log(disk, clean=clean, recovery_point=point, start=start, segment_bytes=400)
    assert (again.log_start_offset, again.epochs) == (start, epochs)


def test_a_log_that_begins_earlier_again_has_its_records_from_there_on() -> None:
    """What lay before the log's start was emptied when the log was opened, and then deleted. A power loss undid only
    the latter, and forgot the start: the log began with records that it no longer had, and other replicas did.
    """
    for seed in range(60):
        disk = SimulatedDisk()
        log = open_log(disk, segment_bytes=400)
        for number in range(20):
            append(log, batch([b"%d" % number]), epoch=number // 4)
        point = flush(log)
        disk.kill()
        open_log(disk, clean=False, recovery_point=point, start=15, segment_bytes=400)
        disk.power_loss(Chance(seed))
        again = open_log(disk, clean=False, recovery_point=point, segment_bytes=400)
        assert values_in(again) == [b"%d" % number for number in range(again.log_start_offset, 20)]


def test_an_epoch_checkpoint_ahead_of_its_log_is_cut(disk: SimulatedDisk) -> None:
    log = written(disk)
    log.assign_epoch(9, log.log_end_offset)
    disk.kill()
    assert open_log(disk, clean=False).latest_epoch == 2
    disk.replace(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n3\n0 0\n1 4\n5 8\n")  # of batches a power loss undid
    disk.kill()
    assert open_log(disk, clean=False).epochs == [(0, 0), (1, 6), (2, 12)]


def test_a_log_that_ends_before_its_start_begins_anew(disk: SimulatedDisk) -> None:
    log = written(disk)
    log.close()
    for clean in (False, True):
        disk.kill()
        again = open_log(disk, clean=clean, start=100)
        assert (again.log_start_offset, again.log_end_offset, again.epochs) == (100, 100, [])
        assert disk.list(DIRECTORY).count(FIRST) == 0


def test_leftovers_of_interrupted_work(disk: SimulatedDisk) -> None:
    log = open_log(disk, segment_bytes=300)
    for number in range(12):
        append(log, batch([b"%d" % number]))
    bases = [segment.base_offset for segment in log.segments]
    swapped = b"".join(disk.read_file(f"{DIRECTORY}/{base:020d}.log") for base in bases[:2])
    disk.kill()
    disk.replace(f"{DIRECTORY}/00000000000000000000.log.swap", swapped)  # two segments compacted into one
    disk.replace(f"{DIRECTORY}/00000000000000000000.index.swap", b"")
    disk.replace(f"{DIRECTORY}/{bases[2]:020d}.log.cleaned", b"half")
    disk.replace(f"{DIRECTORY}/{bases[2]:020d}.log.swap", b"of a split that was not finished")
    disk.replace(f"{DIRECTORY}/00000000000000000000.log.deleted", b"gone")
    disk.replace(f"{DIRECTORY}/00000000000000000777.index", b"without a segment")
    disk.replace(f"{DIRECTORY}/00000000000000000005-0000000001.checkpoint.deleted", b"the quorum's own")
    again = open_log(disk, clean=False, segment_bytes=300)
    assert [segment.base_offset for segment in again.segments] == [0, *bases[2:]]
    assert values_in(again) == [b"%d" % number for number in range(12)]
    names = disk.list(DIRECTORY)
    assert [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))] == [
        "00000000000000000005-0000000001.checkpoint.deleted"
    ]
    assert "00000000000000000777.index" not in names


def test_the_end_of_an_older_log_is_not_taken_for_its_own(disk: SimulatedDisk) -> None:
    """A cut that a power loss undid, behind records of a newer epoch that it kept: two logs in one."""
    log = open_log(disk, segment_bytes=400)
    for number in range(9):
        append(log, batch([b"old-%d" % number]), epoch=1)
    second = log.segments[1]
    path, base = second.path(".log"), second.base_offset
    content = disk.read_file(path)
    log.truncate_to(base - 1)
    append(log, batch([b"new"]), epoch=2)
    disk.kill()
    disk.replace(path, content)
    again = open_log(disk, clean=False, segment_bytes=400)
    assert again.log_end_offset == base
    assert values_in(again) == [*(b"old-%d" % number for number in range(base - 1)), b"new"]
    assert again.epochs == [(1, 0), (2, base - 1)]


def test_power_loss_at_every_write() -> None:
    """A workload with rolls, epochs, producers, flushes and cuts, stopped after each of its writes in turn.

    Whatever the medium kept: what a finished flush covered is there, unless it was cut since; the log opens, is made of
    whole batches, and takes the next record.
    """
    total = _play(SimulatedDisk(), [])
    assert total > 150
    chance = Chance(11)
    for number in range(1, total + 1):
        for _ in range(2):
            disk = SimulatedDisk()
            disk.cut_power_at_write = number
            promised: list[int] = [0]
            with pytest.raises(PowerCut):
                _play(disk, promised)
            disk.power_loss(chance)
            point = promised[-1]
            log = open_log(disk, clean=False, recovery_point=point, segment_bytes=500, index_interval_bytes=100)
            assert log.log_end_offset >= point
            headers = batches_in(log)
            assert all(header.crc_matches() for header in headers)
            assert [header.base_offset for header in headers] == [0, *(header.next_offset for header in headers)][:-1]
            for header in headers:
                assert log.epoch_history.epoch_for_offset(header.base_offset) == header.partition_leader_epoch
            end = log.log_end_offset
            assert append(log, epoch=50) == end
            log.close()
            again = open_log(disk, segment_bytes=500)
            assert again.log_end_offset == end + 1


def _play(disk: SimulatedDisk, promised: list[int]) -> int:
    """Run the workload; `promised` gets the recovery point after each flush, and the lower one before each cut."""
    log = open_log(disk, segment_bytes=500, index_interval_bytes=100)
    sequence = 0
    for number in range(60):
        if number in (25, 45):
            keep = log.log_end_offset - 7
            promised.append(max(0, min(promised[-1], keep - 3)) if promised else 0)  # the batch there goes whole
            keep = log.truncate_to(keep)
            sequence = max((one.last_sequence for one in log.producers.producers.values()), default=-1) + 1
        if number % 3 == 0:
            append(log, produced(1, sequence), epoch=number // 10)
            sequence += 1
        else:
            append(log, batch(1 + number % 3), epoch=number // 10)
        if number % 9 == 8:
            promised.append(flush(log))
    log.close()
    promised.append(flush(log))
    return disk.writes
