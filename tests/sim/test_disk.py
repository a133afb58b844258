"""The simulated disk loses what a real one may lose, keeps what a flush promised, and repeats itself for a seed."""

from __future__ import annotations

import pytest

from tidelog.effects import Flush
from tidelog.errors import StorageError
from tidelog.outbox import Chance
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.sim.disk_faults import _whole_batches
from tidelog.storage import File, Slice
from tidelog.wire.batch import Record, build_batch

SEEDS = range(300)


def outcomes_of_power_loss(prepare: object, path: str) -> set[bytes | None]:
    """What a path holds after the power went, over many seeds; None where it is missing."""
    seen: set[bytes | None] = set()
    for seed in SEEDS:
        disk = SimulatedDisk()
        prepare(disk)  # type: ignore[operator]
        disk.power_loss(Chance(seed))
        seen.add(disk.read_file(path) if disk.exists(path) else None)
    return seen


def flushed_file(disk: SimulatedDisk, path: str, data: bytes) -> File:
    file = disk.open(path, create=True)
    file.append(data)
    assert disk.apply_flush(Flush(1, disk, [file], [], [path.rpartition("/")[0]])) is None
    return file


def test_a_kill_keeps_every_byte_and_ends_every_handle() -> None:
    disk = SimulatedDisk()
    file = disk.open("a.log", create=True)
    file.append(b"abc")
    taken = Slice(file, 0, 3)
    disk.replace("checkpoint", b"1")
    disk.kill()
    assert disk.read_file("a.log") == b"abc"
    assert disk.read_file("checkpoint") == b"1"
    assert not taken.valid
    with pytest.raises(RuntimeError, match="before the last kill"):
        file.append(b"d")
    with pytest.raises(RuntimeError, match="before the last kill"):
        file.read(0, 1)
    assert disk.open("a.log").size == 3


def test_what_was_flushed_survives_a_power_loss() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        flushed_file(disk, "a.log", b"0123")

    assert outcomes_of_power_loss(prepare, "a.log") == {b"0123"}


def test_unflushed_bytes_are_kept_lost_torn_or_zeros() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        flushed_file(disk, "a.log", b"0123").append(b"ABCD")

    seen = outcomes_of_power_loss(prepare, "a.log")
    assert {b"0123", b"0123A", b"0123AB", b"0123ABC", b"0123ABCD"} <= seen
    assert b"0123A\0\0" in seen
    assert all(content is not None and content.startswith(b"0123") for content in seen)
    assert all(content is not None and b"0123ABCD".startswith(content.rstrip(b"\0")) for content in seen)


def test_an_unflushed_cut_may_be_undone() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        file = flushed_file(disk, "a.log", b"0123456789")
        file.truncate(6)
        file.append(b"XYZ")
        file.truncate(4)
        file.append(b"AB")

    seen = outcomes_of_power_loss(prepare, "a.log")
    assert {b"0123456789", b"0123AB", b"0123A", b"0123"} <= seen
    assert not any(content is not None and b"X" in content for content in seen)


def test_a_flush_promises_only_what_was_there_when_it_was_asked_for() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        file = flushed_file(disk, "a.log", b"0123")
        file.append(b"AB")
        flush = disk.start_flush(Flush(2, disk, [file]))
        file.append(b"CD")
        assert flush.finish() is None

    assert {b"0123AB", b"0123ABCD"} <= outcomes_of_power_loss(prepare, "a.log")
    assert all(content and content.startswith(b"0123AB") for content in outcomes_of_power_loss(prepare, "a.log"))


def test_a_flush_follows_its_directory_when_that_is_renamed() -> None:
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    flush = disk.start_flush(Flush(1, disk, [], [("t-0/checkpoint", b"1")], [""]))
    disk.rename("t-0", "t-0.1234-delete")
    assert flush.finish() is None
    assert disk.read_file("t-0.1234-delete/checkpoint") == b"1"
    late = disk.start_flush(Flush(2, disk, [], [("t-0.1234-delete/checkpoint", b"2")]))
    disk.delete("t-0.1234-delete")
    assert "no such file" in (late.finish() or "")


def test_a_flushed_cut_is_final() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        file = flushed_file(disk, "a.log", b"0123456789")
        file.truncate(4)
        assert disk.apply_flush(Flush(2, disk, [file])) is None

    assert outcomes_of_power_loss(prepare, "a.log") == {b"0123"}


def test_flushing_a_file_does_not_flush_its_name() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        file = disk.open("a.log", create=True)
        file.append(b"abc")
        disk.apply_flush(Flush(1, disk, [file]))

    assert outcomes_of_power_loss(prepare, "a.log") == {None, b"abc"}


def test_a_file_in_an_unflushed_directory_may_vanish_with_it() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        disk.make_directory("t-0")
        flushed_file(disk, "t-0/a.log", b"abc")

    assert outcomes_of_power_loss(prepare, "t-0/a.log") == {None, b"abc"}

    def with_parent(disk: SimulatedDisk) -> None:
        prepare(disk)
        disk.apply_flush(Flush(2, disk, [], [], [""]))

    assert outcomes_of_power_loss(with_parent, "t-0/a.log") == {b"abc"}


def test_a_replaced_file_is_old_new_or_empty() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        disk.apply_flush(Flush(1, disk, [], [("checkpoint", b"old")]))
        disk.replace("checkpoint", b"new")

    assert outcomes_of_power_loss(prepare, "checkpoint") == {b"old", b"new", b""}


def test_a_flushed_replacement_stays() -> None:
    def prepare(disk: SimulatedDisk) -> None:
        disk.replace("checkpoint", b"old")
        disk.apply_flush(Flush(1, disk, [], [("checkpoint", b"new")]))

    assert outcomes_of_power_loss(prepare, "checkpoint") == {b"new"}


def test_changes_of_names_are_undone_newest_first() -> None:
    seen: set[tuple[str, ...]] = set()
    for seed in SEEDS:
        disk = SimulatedDisk()
        disk.apply_flush(Flush(1, disk, [], [("a", b"1"), ("b", b"2")]))
        disk.rename("a", "c")
        disk.delete("b")
        disk.replace("d", b"3")
        disk.power_loss(Chance(seed))
        seen.add(tuple(disk.list("")))
    assert seen == {("a", "b"), ("b", "c"), ("c",), ("c", "d")}


def test_a_rename_across_directories_is_all_or_nothing() -> None:
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for seed in SEEDS:
        disk = SimulatedDisk()
        disk.make_directory("x")
        disk.make_directory("y")
        disk.apply_flush(Flush(1, disk, [], [("x/a", b"1")], ["", "x", "y"]))
        disk.rename("x/a", "y/a")
        disk.power_loss(Chance(seed))
        seen.add((tuple(disk.list("x")), tuple(disk.list("y"))))
    assert seen == {(("a",), ()), ((), ("a",))}


def test_a_half_deleted_directory_may_come_back() -> None:
    seen: set[tuple[str, ...] | None] = set()
    for seed in SEEDS:
        disk = SimulatedDisk()
        disk.make_directory("t")
        disk.apply_flush(Flush(1, disk, [], [("t/a", b"1"), ("t/b", b"2")], ["", "t"]))
        disk.delete("t")
        disk.power_loss(Chance(seed))
        seen.add(tuple(disk.list("t")) if disk.exists("t") else None)
    assert seen == {None, (), ("b",), ("a", "b")}


def test_the_power_can_go_at_every_write() -> None:
    def workload(disk: SimulatedDisk) -> None:
        file = disk.open("a.log", create=True)
        file.append(b"abc")
        disk.apply_flush(Flush(1, disk, [file], [("checkpoint", b"1")], [""]))

    disk = SimulatedDisk()
    names: list[str] = []
    disk.on_write = lambda number, what: names.append(f"{number} {what}")
    workload(disk)
    assert names == [
        "1 create a.log",
        "2 append a.log",
        "3 flush a.log",
        "4 replace checkpoint",
        "5 flush directory ",
        "6 flush directory ",
    ]
    for number in range(1, disk.writes + 1):
        cut = SimulatedDisk()
        cut.cut_power_at_write = number
        with pytest.raises(PowerCut):
            workload(cut)
        assert cut.writes == number
        with pytest.raises(PowerCut):
            cut.exists("a.log")
        cut.power_loss(Chance(number))
        if number >= 5:
            assert cut.read_file("checkpoint") == b"1"
            assert cut.read_file("a.log") == b"abc"


def test_no_handler_of_the_core_survives_a_power_cut() -> None:
    assert not issubclass(PowerCut, Exception)


def test_the_same_seed_loses_the_same_things() -> None:
    def life(seed: int) -> list[tuple[str, bytes]]:
        disk = SimulatedDisk()
        files = [disk.open(f"{number}.log", create=True) for number in range(20)]
        for number, file in enumerate(files):
            file.append(bytes([number]) * 50)
        disk.apply_flush(Flush(1, disk, [], [], [""]))
        disk.power_loss(Chance(seed))
        return [(name, disk.read_file(name)) for name in disk.list("")]

    assert life(7) == life(7)
    assert life(7) != life(8)


def test_a_full_disk_leaves_the_file_as_it_was() -> None:
    disk = SimulatedDisk(capacity_bytes=10)
    file = disk.open("a.log", create=True)
    file.append(b"12345678")
    with pytest.raises(StorageError, match="no space left"):
        file.append(b"abc")
    assert file.read(0, 100) == b"12345678"
    with pytest.raises(StorageError, match="no space left"):
        disk.replace("checkpoint", b"abc")
    assert disk.list("") == ["a.log"]
    assert disk.usage() == (10, 2)
    file.truncate(4)
    file.append(b"abcdef")
    assert disk.usage() == (10, 0)
    disk.delete("a.log")
    assert disk.usage() == (10, 10)


def test_a_failing_disk_fails_what_it_was_told_to() -> None:
    disk = SimulatedDisk("/data/1")
    disk.make_directory("t-0")
    file = disk.open("t-0/a.log", create=True)
    other = disk.open("b.log", create=True)
    disk.fail("append", path_prefix="t-0/", times=1)
    with pytest.raises(StorageError, match=r"log directory /data/1: t-0/a\.log: input/output error"):
        file.append(b"x")
    assert file.size == 0
    other.append(b"x")
    file.append(b"y")
    disk.fail("flush")
    assert disk.apply_flush(Flush(1, disk, [file])) == "log directory /data/1: t-0/a.log: input/output error"
    disk.fail()
    with pytest.raises(StorageError):
        disk.list("")
    disk.heal()
    assert disk.apply_flush(Flush(1, disk, [file])) is None
    assert file.read(0, 1) == b"y"


def test_bit_rot_changes_one_bit() -> None:
    disk = SimulatedDisk()
    disk.replace("a.log", b"abc")
    disk.flip_bit("a.log", 1, 2)
    assert disk.read_file("a.log") == bytes([97, 98 ^ 4, 99])


def test_rot_finds_the_batches_of_a_file_that_a_power_loss_tore() -> None:
    """Its node may not have opened it yet (seed 910168 of a hunt)."""
    batch = build_batch([Record(0, 0, b"k", b"v")])
    for torn in (b"", batch[:30], bytes(200), batch[:70] + bytes(200)):
        assert [one.base_offset for one in _whole_batches(batch + torn)][:1] == [0]
    assert _whole_batches(bytes(200)) == []
