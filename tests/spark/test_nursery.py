"""Spark's Python processes are forked from one that has loaded what they need, and are what Spark asked for."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.processes import wait_until
from tidelog.spark.nursery import Nursery, _door_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there are processes forked this way")
WAIT_S = 60.0


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """One for these tests, beside Spark's."""
    made = Nursery()
    yield made
    assert made._process.stdin is not None
    made._process.stdin.close()
    made._process.wait(WAIT_S)
    assert not made.directory.exists()


class Daemon:
    """What Spark does with a daemon: start it, ask it for a worker, end it."""

    def __init__(self, nursery: Nursery, changed: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(nursery.door), "-m", "pyspark.daemon", "pyspark.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHON_WORKER_FACTORY_SECRET": "s", **(changed or {})},
        )
        assert self.process.stdout is not None
        self.port = int.from_bytes(self.process.stdout.read(4), "big")
        self.daemon = parent_of(self.worker())

    def worker(self) -> int:
        """The number of a new worker's process."""
        connection = socket.create_connection(("127.0.0.1", self.port), WAIT_S)
        self.connection = connection
        return int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")

    def end(self) -> None:
        """As the JVM's end does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.wait()

    def wait(self) -> None:
        """Until neither the door nor the daemon is there."""
        assert self.process.stdout is not None
        self.connection.close()
        self.process.wait(WAIT_S)
        self.process.stdout.close()
        wait_until_gone(self.daemon)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def wait_until_gone(process: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline_s, f"process {process} does not end"
        time.sleep(0.01)


def test_a_daemon_is_forked_with_the_pipes_of_spark_and_ends_with_them(nursery: Nursery) -> None:
    """A query that had to load PySpark and Arrow four times would be seconds slower."""
    daemon = Daemon(nursery)
    assert parent_of(daemon.daemon) == nursery._process.pid
    daemon.end()


def test_a_daemon_ends_when_spark_ends_its_door(nursery: Nursery) -> None:
    """SparkContext.stop() ends daemons by a signal: what is left would stay as long as the machine runs."""
    daemon = Daemon(nursery)
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait()
    assert daemon.process.stdin is not None
    daemon.process.stdin.close()


DEAF = """if True:
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    print("ready", flush=True)
    signal.sigwait([signal.SIGTERM])
    print("lost", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    signal.pause()
"""


def test_a_daemon_that_misses_a_signal_gets_another(tmp_path: Path) -> None:
    """PySpark's daemon raises an exception at the first, which gets lost when it comes in the middle of a fork."""
    daemon = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == b"ready\n"
    address, door = str(tmp_path / "socket"), tmp_path / "door"
    door.write_text(_door_text(address))
    door.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        listening.settimeout(WAIT_S)
        command = [str(door), "-m", "pyspark.daemon"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        connection, _ = listening.accept()
        with connection:
            size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
            connection.recv(size, socket.MSG_WAITALL)
            connection.sendall(daemon.pid.to_bytes(4, "big"))
            wait_until(lambda: catches(process.pid, signal.SIGALRM), WAIT_S, "the door listens to signals")
            process.send_signal(signal.SIGTERM)
            assert daemon.wait(WAIT_S) == -signal.SIGTERM
    assert daemon.stdout.read() == b"lost\n"
    daemon.stdout.close()
    assert process.wait(WAIT_S) == 0


def catches(process: int, number: int) -> bool:
    (caught,) = re.findall(r"SigCgt:\t(\w+)", Path(f"/proc/{process}/status").read_text())
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("variable", ["PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS"])
def test_what_a_fork_could_not_be_is_a_new_python(nursery: Nursery, variable: str) -> None:
    """Keys that hash differently in two workers are grouped wrongly, without a word."""
    daemon = Daemon(nursery, {variable: "7"})
    assert daemon.daemon == daemon.process.pid
    daemon.end()


def test_a_nursery_that_is_told_to_end_leaves_no_folder() -> None:
    """A job that is stopped by its scheduler ends by this signal."""
    nursery = Nursery()
    daemon = Daemon(nursery)
    nursery._process.terminate()
    nursery._process.wait(WAIT_S)
    assert not nursery.directory.exists()
    assert daemon.worker() > 0, "what it has forked is Spark's"
    daemon.end()


def test_without_the_nursery_there_are_daemons_as_ever() -> None:
    """Spark goes on asking at the same door."""
    nursery = Nursery()
    nursery._process.kill()
    nursery._process.wait()
    daemon = Daemon(nursery)
    assert daemon.daemon == daemon.process.pid
    daemon.end()
    shutil.rmtree(nursery.directory)


def test_what_is_no_daemon_runs_on_the_users_python(nursery: Nursery) -> None:
    """A stream's planner is started without a daemon."""
    words = [str(nursery.door), "-c", "import sys, pyspark; print(sys.executable, sys.flags.isolated)"]
    outcome = subprocess.run(words, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == [sys.executable, "0"]


def test_workers_have_what_they_need_and_draw_numbers_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """numpy's state of chance is made when it is loaded: forks would all draw the same."""

    def draw(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        (tmp_path / str(os.getpid())).touch()
        deadline_s = time.monotonic() + WAIT_S
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        found = {
            "process": [os.getpid()],
            "number": [float(np.random.random())],
            "words": [" ".join(sys.orig_argv)],
            "path": [sys.path[-1]],
        }
        yield pa.record_batch(found)

    frame = spark.range(2, numPartitions=2).mapInArrow(draw, "process bigint, number double, words string, path string")
    first, second = frame.collect()
    assert first.process != second.process
    assert first.number != second.number
    assert "tidelog.spark.nursery" in first.words
    assert first.path == sys.path[-1]
