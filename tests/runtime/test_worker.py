"""Jobs run in a process of their own; whatever happens to it, each is answered once and the next one runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import jobs
from tidelog.effects import Work
from tidelog.runtime.clock import Clock
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.loop import Loop
from tidelog.runtime.worker import Worker


class Bench:
    """A worker on a loop that the test turns."""

    def __init__(self, directory: Path, **options: int) -> None:
        self.storage = DirectoryStorage(str(directory))
        self.loop = Loop(Clock())
        self.done: list[tuple[int, Any, str | None]] = []
        self.worker = Worker(
            self.loop, lambda token, result, error: self.done.append((token, result, error)), **options
        )

    def run(self, token: int, job: Any, *arguments: Any) -> None:
        self.worker.submit(Work(token, self.storage, job, arguments))

    def wait_for(self, count: int) -> list[tuple[int, Any, str | None]]:
        deadline = time.monotonic() + 60
        while len(self.done) < count:
            assert time.monotonic() < deadline
            self.loop.turn(100)
        return self.done

    def turn_until_helper_is_gone(self) -> None:
        deadline = time.monotonic() + 60
        while self.worker.pid is not None:
            assert time.monotonic() < deadline
            self.loop.turn(100)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.worker.stop()
    bench.loop.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_run_in_order_in_another_process(bench: Bench) -> None:
    bench.storage.replace("a", b"hello")
    bench.run(1, jobs.copy_upper, "a", "b")
    bench.run(2, jobs.process_id)
    bench.run(3, jobs.process_id)
    first, second, third = bench.wait_for(3)
    assert first == (1, 5, None)
    assert bench.storage.read_file("b") == b"HELLO"
    assert second[1] == third[1] == bench.worker.pid != os.getpid()


def test_a_job_that_fails_says_why(bench: Bench) -> None:
    bench.run(1, jobs.fail)
    bench.run(2, jobs.copy_upper, "missing", "b")
    bench.run(3, jobs.process_id)
    first, second, third = bench.wait_for(3)
    assert first == (1, None, "ValueError: on purpose")
    assert second[2] is not None
    assert "FileNotFoundError" in second[2]
    assert third[2] is None


def test_a_helper_that_dies_takes_one_job_with_it(bench: Bench) -> None:
    bench.run(1, jobs.die)
    bench.run(2, jobs.process_id)
    first, second = bench.wait_for(2)
    assert first == (1, None, "the helper process was killed by signal 9")
    assert second[1] == bench.worker.pid
    assert second[2] is None


def test_results_larger_than_a_socket_takes_at_once(bench: Bench) -> None:
    bench.run(1, jobs.big, 5_000_000)
    assert bench.wait_for(1) == [(1, b"x" * 5_000_000, None)]
    bench.run(2, len, b"y" * 5_000_000)
    assert "TypeError" in (bench.wait_for(2)[1][2] or "")


def test_the_queue_is_bounded_and_every_job_is_answered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_queued=2)
    for token in range(4):
        bench.run(token, jobs.wait_for_file, "go")
    bench.storage.replace("go", b"")
    done = bench.wait_for(4)
    assert sorted(token for token, _, _ in done) == [0, 1, 2, 3]
    assert [(token, error) for token, _, error in done if error] == [(3, "2 jobs are waiting already")]
    bench.worker.stop()
    bench.loop.close()


def test_a_job_that_cannot_travel_is_refused(bench: Bench) -> None:
    bench.run(1, lambda storage: None)
    ((token, _, error),) = bench.wait_for(1)
    assert token == 1
    assert error is not None
    assert "cannot be sent" in error


def test_an_idle_helper_is_ended_and_started_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, idle_ms=20)
    bench.run(1, jobs.process_id)
    first = bench.wait_for(1)[0][1]
    bench.turn_until_helper_is_gone()
    assert not is_alive(first)
    bench.run(2, jobs.process_id)
    assert bench.wait_for(2)[1][1] != first
    bench.worker.stop()
    bench.loop.close()


def test_stopping_ends_the_helper_in_the_middle_of_a_job(bench: Bench) -> None:
    bench.run(1, jobs.wait_for_file, "never")
    deadline = time.monotonic() + 60
    while not bench.storage.exists("never.pid"):
        assert time.monotonic() < deadline
        bench.loop.turn(10)
    pid = int(bench.storage.read_file("never.pid"))
    bench.worker.stop()
    assert not is_alive(pid)
    assert bench.done == []


def test_a_helper_does_not_outlive_its_node(tmp_path: Path) -> None:
    """The node is killed while a job runs: nobody could end the helper but itself."""
    program = f"""
import os, signal
from pathlib import Path
from tests.runtime.test_worker import Bench
from tests.runtime import jobs
bench = Bench(Path({str(tmp_path)!r}))
bench.run(1, jobs.wait_for_file, "never")
while not bench.storage.exists("never.pid"):
    bench.loop.turn(10)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=120).returncode == -9
    pid = int((tmp_path / "never.pid").read_bytes())
    deadline = time.monotonic() + 60
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _runs(pid: int) -> bool:
    """An orphan may stay a zombie for a while where nobody adopts it; that is not running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
