"""Flushes happen off the loop, in order, once for many, and a failed part stops the rest of its flush."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.effects import Flush
from tidelog.runtime import flusher as flusher_module
from tidelog.runtime.descriptors import Descriptors
from tidelog.runtime.files import DirectoryStorage, write_whole
from tidelog.runtime.flusher import Flusher


class Outcome:
    """A flusher with what it reported."""

    def __init__(self) -> None:
        self.done: list[tuple[int, str | None]] = []
        self._woken = threading.Semaphore(0)
        self.flusher = Flusher(lambda token, error: self.done.append((token, error)), self._woken.release)

    def wait_for(self, count: int) -> list[tuple[int, str | None]]:
        while len(self.done) < count:
            assert self._woken.acquire(timeout=60)
            self.flusher.collect()
        return self.done


@pytest.fixture
def outcome() -> Iterator[Outcome]:
    outcome = Outcome()
    yield outcome
    outcome.flusher.stop()


class Gate:
    """Stands in for fdatasync: counts calls, and holds them up until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.failing: set[str] = set()
        monkeypatch.setattr(flusher_module, "_flush_file", self._flush)

    def _flush(self, fd: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        self.calls.append(name)
        self.entered.release()
        assert self.opened.wait(60)
        if name in self.failing:
            raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def test_flushes_of_a_storage_finish_in_order_and_replacements_are_made(tmp_path: Path, outcome: Outcome) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    for token in range(20):
        file.append(b"x")
        outcome.flusher.submit(Flush(token, storage, [file], [("checkpoint", b"%d" % token)], [""]))
    assert outcome.wait_for(20) == [(token, None) for token in range(20)]
    assert storage.read_file("checkpoint") == b"19"
    assert storage.list("") == ["a.log", "checkpoint"]
    assert outcome.flusher.pending == 0


def test_what_waits_is_forced_once(tmp_path: Path, outcome: Outcome, gate: Gate) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    other = storage.open("b.log", create=True)
    outcome.flusher.submit(Flush(0, storage, [file]))
    assert gate.entered.acquire(timeout=60)
    for token in range(1, 11):
        outcome.flusher.submit(Flush(token, storage, [file, other]))
    gate.opened.set()
    assert outcome.wait_for(11) == [(token, None) for token in range(11)]
    assert gate.calls == ["a.log", "a.log", "b.log"]


def test_a_failed_file_keeps_its_checkpoint_from_being_written(tmp_path: Path, outcome: Outcome, gate: Gate) -> None:
    storage = DirectoryStorage(str(tmp_path))
    good = storage.open("good.log", create=True)
    bad = storage.open("bad.log", create=True)
    first = storage.open("first.log", create=True)
    gate.failing.add("bad.log")
    outcome.flusher.submit(Flush(1, storage, [first]))
    assert gate.entered.acquire(timeout=60)
    outcome.flusher.submit(Flush(2, storage, [good], [("checkpoint", b"good")]))
    outcome.flusher.submit(Flush(3, storage, [good, bad], [("checkpoint", b"bad"), ("other", b"bad")]))
    gate.opened.set()
    assert outcome.wait_for(3) == [
        (1, None),
        (2, None),
        (3, f"log directory {tmp_path}: bad.log: Input/output error"),
    ]
    assert storage.read_file("checkpoint") == b"good"
    assert not storage.exists("other")


def test_a_merged_replacement_that_fails_fails_all_who_asked_for_it(
    tmp_path: Path, outcome: Outcome, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    outcome.flusher.submit(Flush(1, storage, [file]))
    assert gate.entered.acquire(timeout=60)

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(flusher_module, "write_whole", refuse)
    outcome.flusher.submit(Flush(2, storage, [], [("checkpoint", b"2")]))
    outcome.flusher.submit(Flush(3, storage, [], [("checkpoint", b"3")]))
    gate.opened.set()
    done = outcome.wait_for(3)
    assert done[0] == (1, None)
    assert all(error is not None and "No space left" in error for _, error in done[1:])
    assert storage.list("") == ["a.log"]


def test_a_replacement_left_to_a_later_flush_that_fails_before_it_is_not_called_done(
    tmp_path: Path, outcome: Outcome, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    outcome.flusher.submit(Flush(1, storage, [file]))
    assert gate.entered.acquire(timeout=60)

    def refuse_first(path: str, *arguments: Any, **options: Any) -> None:
        if path.startswith("first"):
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, *arguments, **options)

    monkeypatch.setattr(flusher_module, "write_whole", refuse_first)
    outcome.flusher.submit(Flush(2, storage, [], [("second", b"2")]))
    outcome.flusher.submit(Flush(3, storage, [], [("first", b"3"), ("second", b"3")]))
    gate.opened.set()
    errors = dict(outcome.wait_for(3))
    assert errors[3] is not None
    assert errors[2] is not None or storage.read_file("second") == b"2"


def test_a_flush_follows_what_is_renamed_or_deleted_before_its_turn(
    tmp_path: Path, outcome: Outcome, gate: Gate
) -> None:
    storage = DirectoryStorage(str(tmp_path))
    storage.make_directory("t-0")
    storage.make_directory("t-1")
    kept = storage.open("t-0/a.log", create=True)
    gone = storage.open("t-1/a.log", create=True)
    outcome.flusher.submit(Flush(1, storage, [kept]))
    assert gate.entered.acquire(timeout=60)
    outcome.flusher.submit(Flush(2, storage, [kept, gone], [("t-0/checkpoint", b"1")], ["t-0", "t-1", ""]))
    storage.rename("t-0", "t-0.deleted")
    storage.delete("t-1")
    gate.opened.set()
    assert outcome.wait_for(2) == [(1, None), (2, None)]
    assert storage.read_file("t-0.deleted/checkpoint") == b"1"


def test_a_file_that_was_flushed_is_let_go_by_the_loop_and_not_by_the_thread(tmp_path: Path, outcome: Outcome) -> None:
    descriptors = Descriptors(10)
    storage = DirectoryStorage(str(tmp_path), descriptors)
    file = storage.open("a", create=True)
    outcome.flusher.submit(Flush(1, storage, files=[file]))
    assert outcome.wait_for(1) == [(1, None)]
    storage.delete("a")
    del file
    # Nobody has it any more: its descriptor, and with it its space on the disk, must not wait for the next flush.
    assert len(descriptors) == 0


def test_many_flushes_at_once_do_not_take_all_descriptors(tmp_path: Path, outcome: Outcome) -> None:
    storage = DirectoryStorage(str(tmp_path), Descriptors(10))
    outcome.flusher.max_descriptors = 20
    most = 0
    for number in range(100):
        storage.make_directory(f"t-{number}")
        file = storage.open(f"t-{number}/log", create=True)
        file.append(b"x")
        outcome.flusher.submit(Flush(number, storage, [file], [], [f"t-{number}"]))
        storage.rename(f"t-{number}", f"t-{number}.gone")
        held = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
        most = max(most, sum(path.startswith(str(tmp_path)) for path in held))
    assert most <= 20 + 10
    assert outcome.wait_for(100) == [(number, None) for number in range(100)]


def test_two_storages_do_not_wait_for_each_other(tmp_path: Path, outcome: Outcome, gate: Gate) -> None:
    storages = []
    for name in ("slow", "fast"):
        (tmp_path / name).mkdir()
        storages.append(DirectoryStorage(str(tmp_path / name)))
    slow, fast = storages
    outcome.flusher.submit(Flush(1, slow, [slow.open("a.log", create=True)]))
    assert gate.entered.acquire(timeout=60)
    outcome.flusher.submit(Flush(2, fast, [], [("checkpoint", b"x")]))
    assert outcome.wait_for(1) == [(2, None)]
    gate.opened.set()
    assert outcome.wait_for(2) == [(2, None), (1, None)]


def test_a_missing_directory_is_reported_not_raised(tmp_path: Path, outcome: Outcome) -> None:
    storage = DirectoryStorage(str(tmp_path))
    outcome.flusher.submit(Flush(1, storage, [], [], ["gone"]))
    (token, error) = outcome.wait_for(1)[0]
    assert token == 1
    assert error is not None
    assert "gone" in error


def test_stopping_finishes_what_was_taken_in(tmp_path: Path) -> None:
    outcome = Outcome()
    storage = DirectoryStorage(str(tmp_path))
    outcome.flusher.submit(Flush(1, storage, [], [("checkpoint", b"1")]))
    outcome.flusher.stop()
    assert storage.read_file("checkpoint") == b"1"
    assert not any(thread.name.startswith("flush ") and thread.is_alive() for thread in threading.enumerate())
