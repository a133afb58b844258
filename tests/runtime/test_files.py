"""Real files: failures leave them as they were, descriptors stay within their bound, a directory has one user."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidelog.errors import DirectoryError, StorageError
from tidelog.runtime.descriptors import Descriptors
from tidelog.runtime.files import DirectoryStorage
from tidelog.storage import Slice


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let the system refuse to write beyond a size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    file.append(b"x" * 6000)
    with largest_file(10_000), pytest.raises(StorageError) as caught:
        file.append(b"y" * 6000)
    assert caught.value.root == str(tmp_path)
    assert caught.value.path == "a.log"
    assert file.size == 6000
    assert (tmp_path / "a.log").stat().st_size == 6000
    file.append(b"z")
    assert file.read(5999, 10) == b"xz"


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path))
    storage.replace("checkpoint", b"old")
    with largest_file(10), pytest.raises(StorageError):
        storage.replace("checkpoint", b"new" * 10)
    assert storage.read_file("checkpoint") == b"old"
    assert storage.list("") == ["checkpoint"]


def test_many_files_share_few_descriptors(tmp_path: Path) -> None:
    descriptors = Descriptors(8)
    storage = DirectoryStorage(str(tmp_path), descriptors)
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    files = [storage.open(f"{number:03}.log", create=True) for number in range(100)]
    for round_number in range(3):
        for number, file in enumerate(files):
            file.append(b"%03d-%d " % (number, round_number))
    assert len(descriptors) == 8
    assert len(os.listdir("/dev/fd")) == before + 8
    for number, file in enumerate(files):
        assert file.read(0, 100) == b"".join(b"%03d-%d " % (number, turn) for turn in range(3))


def test_a_busy_file_keeps_its_descriptor(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path), Descriptors(4))
    busy = storage.open("busy.log", create=True)
    assert hasattr(busy, "descriptor")
    kept = busy.descriptor()
    others = []
    for number in range(20):
        busy.append(b"x")
        others.append(storage.open(f"{number}.log", create=True))
        assert busy.descriptor() == kept


def test_a_slice_outlives_descriptor_name_and_handle(tmp_path: Path) -> None:
    descriptors = Descriptors(1)
    storage = DirectoryStorage(str(tmp_path), descriptors)
    storage.make_directory("t-0")
    file = storage.open("t-0/a.log", create=True)
    file.append(b"0123456789")
    kept = Slice(file, 2, 3)
    other = storage.open("b.log", create=True)
    other.append(b"takes the only descriptor")
    file.close()
    storage.delete("t-0")
    del file
    other.append(b"again")
    assert kept.read() == b"234"
    del kept
    gc.collect()
    assert len(descriptors) == 1


def test_a_file_taken_away_behind_our_back_is_a_failed_disk_not_a_missing_file(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path), Descriptors(1))
    file = storage.open("a.log", create=True)
    file.append(b"abc")
    storage.open("b.log", create=True)
    (tmp_path / "a.log").unlink()
    with pytest.raises(StorageError, match="no such file"):
        file.append(b"def")
    with pytest.raises(StorageError, match="no such file"):
        file.read(0, 1)


def test_a_vanished_directory_is_a_failed_disk(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    storage = DirectoryStorage(str(root))
    root.rmdir()
    for touch in (
        lambda: storage.open("a.log", create=True),
        lambda: storage.list(""),
        lambda: storage.replace("a", b""),
        storage.usage,
    ):
        with pytest.raises(StorageError):
            touch()


def test_paths_stay_below_the_directory(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path))
    for path in ("../outside", "a/../../b", "/etc/hostname"):
        with pytest.raises(ValueError, match="not below"):
            storage.open(path, create=True)


def test_a_directory_in_use_is_refused_and_untouched(tmp_path: Path) -> None:
    first = DirectoryStorage(str(tmp_path))
    first.lock()
    second = DirectoryStorage(str(tmp_path))
    with pytest.raises(DirectoryError, match="in use"):
        second.lock()
    assert os.listdir(tmp_path) == [".lock"]
    first.close()
    second.lock()
    second.close(untouched=True)
    assert os.listdir(tmp_path) == [".lock"]


def test_a_refused_directory_does_not_even_keep_a_lock_file(tmp_path: Path) -> None:
    storage = DirectoryStorage(str(tmp_path))
    storage.lock()
    storage.close(untouched=True)
    assert os.listdir(tmp_path) == []


def test_what_the_disk_does_not_let_lock_is_not_used(tmp_path: Path) -> None:
    """Somebody else may be in it, so it is as good as failed, though some of it could be read."""
    (tmp_path / ".lock").mkdir()
    (tmp_path / "file").write_bytes(b"bytes")
    storage = DirectoryStorage(str(tmp_path))
    with pytest.raises(StorageError, match="directory"):
        storage.lock()
    for attempt in (storage.read_file, storage.exists, storage.open, storage.delete, storage.list):
        with pytest.raises(StorageError):
            attempt("file")
    storage.close(untouched=True)
    assert (tmp_path / "file").read_bytes() == b"bytes"


def test_the_lock_keeps_java_out_too(tmp_path: Path) -> None:
    """Apache Kafka takes a POSIX lock on the same file."""
    storage = DirectoryStorage(str(tmp_path))
    storage.lock()
    program = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    other = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / ".lock")], capture_output=True, text=True, check=False
    )
    assert "BlockingIOError" in other.stderr
    storage.close()


def test_a_missing_directory_is_made_only_when_asked(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError):
        DirectoryStorage(str(tmp_path / "a" / "b")).lock()
    DirectoryStorage(str(tmp_path / "a" / "b"), create=True).lock()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DirectoryError, match="file exists"):
        DirectoryStorage(str(tmp_path / "file"), create=True)
