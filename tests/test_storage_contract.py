"""The contract of `tidelog.storage`, run against real files and against the simulated disk.

The simulator proves things about the product only as far as its disk behaves like a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidelog.effects import Flush
from tidelog.errors import StorageError
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.flusher import carry_out_flush
from tidelog.sim.disk import SimulatedDisk
from tidelog.storage import Slice, Storage

FlushNow = Callable[[Flush], str | None]


@pytest.fixture(params=["files", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Storage, FlushNow]]:
    if request.param == "files":
        directory = DirectoryStorage(str(tmp_path))
        yield directory, carry_out_flush
        directory.close()
    else:
        simulated = SimulatedDisk()
        yield simulated, simulated.apply_flush


@pytest.fixture
def storage(disk: tuple[Storage, FlushNow]) -> Storage:
    return disk[0]


@pytest.fixture
def flush(disk: tuple[Storage, FlushNow]) -> FlushNow:
    return disk[1]


def test_what_is_appended_is_read_back(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    file.append(b"hello ")
    file.append(bytearray(b"wor"))
    file.append(memoryview(bytearray(b"xxldxx"))[2:4])
    assert file.size == 11
    assert file.read(0, 100) == b"hello world"
    assert file.read(6, 3) == b"wor"
    assert file.read(11, 5) == b""
    assert file.read(50, 5) == b""
    assert storage.size("a.log") == 11
    assert storage.read_file("a.log") == b"hello world"


def test_opening_again_goes_on_at_the_end(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    file.append(b"one")
    file.close()
    again = storage.open("a.log", create=True)
    assert again.size == 3
    again.append(b"two")
    assert again.read(0, 10) == b"onetwo"


def test_two_handles_of_a_file_see_each_other(storage: Storage) -> None:
    first = storage.open("a.log", create=True)
    second = storage.open("a.log")
    first.append(b"0123456789")
    assert second.size == 10
    taken = Slice(second, 0, 10)
    first.truncate(4)
    assert second.size == 4
    assert not taken.valid
    first.close()
    second.append(b"x")
    assert second.read(0, 10) == b"0123x"


def test_a_missing_file_is_not_made_unless_asked(storage: Storage) -> None:
    for missing in (
        lambda: storage.open("a.log"),
        lambda: storage.read_file("a.log"),
        lambda: storage.size("a.log"),
        lambda: storage.modified_ms("a.log"),
        lambda: storage.rename("a.log", "b.log"),
        lambda: storage.list("directory"),
        lambda: storage.open("directory/a.log", create=True),
        lambda: storage.replace("directory/a.log", b""),
    ):
        with pytest.raises(FileNotFoundError):
            missing()
    assert storage.list("") == []


def test_truncating_cuts_and_slices_know_it(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    file.append(b"0123456789")
    before = Slice(file, 2, 5)
    assert before.read() == b"23456"
    file.truncate(5)
    assert not before.valid
    assert file.size == 5
    assert storage.size("a.log") == 5
    after = Slice(file, 2, 3)
    file.append(b"abc")
    assert after.valid
    assert file.read(0, 20) == b"01234abc"


def test_a_cut_cannot_make_a_file_longer(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    file.append(b"abc")
    with pytest.raises(ValueError, match="cannot be cut"):
        file.truncate(4)
    assert file.size == 3


def test_a_closed_file_is_not_written_but_its_slices_stay_readable(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    file.append(b"0123456789")
    kept = Slice(file, 0, 4)
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.append(b"more")
    with pytest.raises(ValueError, match="closed"):
        file.truncate(0)
    assert kept.valid
    assert kept.read() == b"0123"


def test_slices_of_a_deleted_file_stay_readable(storage: Storage) -> None:
    storage.make_directory("t-0")
    file = storage.open("t-0/a.log", create=True)
    file.append(b"0123456789")
    kept = Slice(file, 3, 4)
    storage.rename("t-0/a.log", "t-0/a.log.deleted")
    file.close()
    storage.delete("t-0/a.log.deleted")
    assert storage.list("t-0") == []
    assert kept.valid
    assert kept.read() == b"3456"
    storage.delete("t-0")
    assert kept.read() == b"3456"


def test_a_path_follows_renames_of_the_file_and_of_its_directory(storage: Storage) -> None:
    storage.make_directory("t-0")
    file = storage.open("t-0/a.log", create=True)
    file.append(b"abc")
    storage.rename("t-0/a.log", "t-0/b.log")
    assert file.path == "t-0/b.log"
    storage.rename("t-0", "t-0.1234-delete")
    assert file.path == "t-0.1234-delete/b.log"
    file.append(b"def")
    assert file.read(0, 10) == b"abcdef"
    assert storage.read_file("t-0.1234-delete/b.log") == b"abcdef"
    assert storage.list("") == ["t-0.1234-delete"]


def test_a_new_file_under_an_old_name_is_another_file(storage: Storage) -> None:
    old = storage.open("a.log", create=True)
    old.append(b"old")
    storage.rename("a.log", "a.log.deleted")
    new = storage.open("a.log", create=True)
    new.append(b"brand new")
    assert (old.size, new.size) == (3, 9)
    assert (old.path, new.path) == ("a.log.deleted", "a.log")
    assert old.read(0, 10) == b"old"


def test_renaming_replaces_a_file_and_the_replaced_one_stays_readable(storage: Storage) -> None:
    old = storage.open("a.log", create=True)
    old.append(b"old")
    kept = Slice(old, 0, 3)
    new = storage.open("a.log.swap", create=True)
    new.append(b"swapped")
    storage.rename("a.log.swap", "a.log")
    assert storage.list("") == ["a.log"]
    assert storage.read_file("a.log") == b"swapped"
    assert new.path == "a.log"
    assert kept.read() == b"old"


def test_a_directory_is_never_replaced_by_a_rename(storage: Storage) -> None:
    storage.make_directory("t-0")
    storage.make_directory("t-1")
    storage.replace("file", b"x")
    for source, target in (("t-0", "t-1"), ("file", "t-1"), ("t-0", "file")):
        with pytest.raises(StorageError):
            storage.rename(source, target)
    assert storage.list("") == ["file", "t-0", "t-1"]


def test_replace_writes_a_file_whole(storage: Storage) -> None:
    storage.replace("checkpoint", b"0\n1\n")
    assert storage.read_file("checkpoint") == b"0\n1\n"
    storage.replace("checkpoint", b"0\n")
    assert storage.read_file("checkpoint") == b"0\n"
    assert storage.list("") == ["checkpoint"]


def test_directories(storage: Storage) -> None:
    storage.make_directory("a/b/c")
    storage.make_directory("a/b/c")
    storage.replace("a/b/file", b"x")
    assert storage.list("") == ["a"]
    assert storage.list("a/b") == ["c", "file"]
    assert storage.exists("a/b")
    assert storage.exists("a/b/file")
    assert not storage.exists("a/x")
    assert not storage.exists("a/b/file/x")
    storage.delete("a")
    storage.delete("a")
    storage.delete("never/there")
    assert storage.list("") == []


def test_a_directory_is_no_file_and_a_file_is_no_directory(storage: Storage) -> None:
    storage.make_directory("directory")
    storage.replace("file", b"x")
    for wrong in (
        lambda: storage.open("directory", create=True),
        lambda: storage.read_file("directory"),
        lambda: storage.replace("directory", b""),
        lambda: storage.list("file"),
        lambda: storage.make_directory("file"),
        lambda: storage.make_directory("file/below"),
    ):
        with pytest.raises(StorageError):
            wrong()


def test_usage_says_how_much_room_there_is(storage: Storage) -> None:
    total, usable = storage.usage()
    assert 0 < usable <= total


def test_modified_time_never_goes_back_when_written(storage: Storage) -> None:
    file = storage.open("a.log", create=True)
    before = storage.modified_ms("a.log")
    file.append(b"x")
    assert storage.modified_ms("a.log") >= before >= 0


def test_a_flush_carries_out_its_replacements(storage: Storage, flush: FlushNow) -> None:
    storage.make_directory("t-0")
    file = storage.open("t-0/a.log", create=True)
    file.append(b"abc")
    error = flush(Flush(1, storage, [file], [("t-0/checkpoint", b"new"), ("top", b"x")], ["t-0", ""]))
    assert error is None
    assert storage.read_file("t-0/checkpoint") == b"new"
    assert storage.list("") == ["t-0", "top"]
    assert storage.list("t-0") == ["a.log", "checkpoint"]


def test_a_flush_that_cannot_be_done_says_so(storage: Storage, flush: FlushNow) -> None:
    error = flush(Flush(1, storage, [], [("gone/checkpoint", b"new")], []))
    assert error is not None
    assert storage.root in error
    assert flush(Flush(2, storage, [], [], ["gone"])) is not None


def test_a_deleted_or_closed_file_can_still_be_flushed(storage: Storage, flush: FlushNow) -> None:
    """A segment may be rolled or deleted while its Flush waits for its turn: that is no failure of the disk."""
    file = storage.open("a.log", create=True)
    file.append(b"abc")
    file.close()
    storage.delete("a.log")
    assert flush(Flush(1, storage, [file])) is None
