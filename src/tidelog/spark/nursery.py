"""Where the Python processes of a local Spark come from: one that has loaded what they need, and forks.

Spark starts a daemon for each kind of Python process, and a first query needs four kinds, one after the other: to find
formats, to make one, to plan the read, to read. Each loads PySpark and Arrow anew, up to half a second of work, and so
does each worker, since PySpark's daemon loads nothing before it forks. The nursery is started beside the JVM, loads all
of it once while the JVM starts, and forks whatever Spark asks for.

    driver ── starts ──> nursery ── forks ──> daemon ── forks ──> worker
    JVM ── starts ──> door (see `nursery_door`) ── hands its pipes and variables over ──> nursery

Where a fork would not be what Spark asked for, the nursery refuses and the door becomes Python itself, as without it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark import SparkContext

FIRST = (
    "pyspark.daemon",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
)
"""Loaded before the first request is answered."""
LATER = (
    "tidelog.spark.source",
    "tidelog.spark.source_offsets",
    "pyspark.worker",
    "tidelog.spark.fetching",
    "tidelog.spark.workers",
    "tidelog.spark.decode_fallback",
    "tidelog.spark.decode_kernels",
)
"""Loaded one by one, and requests are answered between them."""

_OF_PYTHON = re.compile("PYTHON[A-Z]+|OMP_NUM_THREADS|(OPENBLAS|MKL|NUMBA)_.*")
"""Variables that Python and its libraries read when they start; those with PYTHON_ are Spark's."""
_GIVEN_LATER = frozenset({"PYTHONPATH", "PYTHONUNBUFFERED"})

_started: Nursery | None = None


# --- in the driver ---


class Nursery:
    """The process as the driver sees it: it ends with the driver or with Spark's JVM, whichever is first."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="tidelog-nursery-"))
        address = str(self.directory / "socket")
        self.door = self.directory / "python"
        self.door.write_text(_door_text(address))
        self.door.chmod(0o700)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen()
            # The seed and the one thread of linear algebra are what Spark gives its workers. Arrow's jemalloc, which is
            # there whether it is used or not, would start a thread.
            fixed = {
                "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
                "OMP_NUM_THREADS": "1",
                "JE_ARROW_MALLOC_CONF": "background_thread:false",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tidelog.spark.nursery", str(listening.fileno()), str(self.directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=os.environ | fixed,
                pass_fds=[listening.fileno()],
            )

    @property
    def is_alive(self) -> bool:
        """Whether it can still fork."""
        return self._process.poll() is None

    def serve(self, context: SparkContext) -> None:
        """Let Spark ask here for its Python processes from now on, and let this one end with the JVM."""
        context.pythonExec = str(self.door)
        gateway = context._gateway
        assert gateway is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"%d\n" % gateway.proc.pid)
            self._process.stdin.flush()


def nursery() -> Nursery | None:
    """The nursery of this driver, made when there is none; None where it is not sure to work."""
    global _started  # noqa: PLW0603 - one a driver
    if sys.platform != "linux":
        return None  # elsewhere a process that has loaded much is no more to be forked
    if _started is None or not _started.is_alive:
        try:
            _started = Nursery()
        except OSError:
            return None
    return _started if os.access(_started.door, os.X_OK) else None


def _door_text(address: str) -> str:
    source = Path(__file__).with_name("nursery_door.py").read_text()
    source = source.replace('PYTHON = ""', f"PYTHON = {sys.executable!r}", 1)
    return f"#!{sys.executable} -IS\n" + source.replace('NURSERY = ""', f"NURSERY = {address!r}", 1)


# --- in the nursery ---


def main(listening: socket.socket) -> None:
    """Load, and fork on request until the driver closes our standard input or the JVM ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's: it ends us by its own end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # for the folder of the door to go, too
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own_environment = dict(os.environ)
    for name in FIRST:
        _load(name)
    os.register_at_fork(after_in_child=_reseed)
    left = list(LATER)
    watched = [sys.stdin.fileno(), listening.fileno()]
    while True:
        ready, _, _ = select.select(watched, [], [], 0 if left else None)
        if watched[0] in ready:
            told = os.read(watched[0], 100)
            if not told:
                return
            with contextlib.suppress(OSError):  # an older kernel, or it is gone already: the driver's end is enough
                watched.append(os.pidfd_open(int(told)))
        elif watched[1] in ready:
            connection, _ = listening.accept()
            with connection:
                _answer(connection, listening, own_environment)
        elif ready:
            return
        elif left:
            _load(left.pop(0))
            if not left:
                gc.collect()
                gc.freeze()


def _load(name: str) -> None:
    with contextlib.suppress(ImportError):  # a worker that needs it will say so, and numba is optional
        importlib.import_module(name)


def _reseed() -> None:
    """Numbers that are drawn in one worker are not to be those of another: numpy's state was made before the fork."""
    drawing = sys.modules.get("numpy.random")
    if drawing is not None:
        drawing.seed()


def _answer(connection: socket.socket, listening: socket.socket, own_environment: Mapping[str, str]) -> None:
    """Fork a daemon for one door, or refuse with the number 0."""
    with contextlib.suppress(OSError, ValueError):
        header, pipes, _, _ = socket.recv_fds(connection, 4, 3)
        try:
            size = int.from_bytes(header, "big")
            request = json.loads(connection.recv(size, socket.MSG_WAITALL))
            if len(pipes) != 3 or not _can_serve(request["environment"], own_environment):
                connection.sendall(bytes(4))
                return
            process = os.fork()
            if not process:
                listening.close()
                _become_daemon(request, pipes, connection)
            connection.sendall(process.to_bytes(4, "big"))
        finally:
            for number in pipes:
                os.close(number)


def _can_serve(wanted: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether a fork is what a new Python with these variables would be: nothing that it reads at its start differs.

    With a second thread it is none either: what a thread holds at the moment of the fork stays locked in the child.
    """
    for name in filter(_OF_PYTHON.fullmatch, {*wanted, *own}):
        if name in _GIVEN_LATER or (name not in wanted and name == "OMP_NUM_THREADS"):
            continue
        if wanted.get(name) != own.get(name):
            return False
    return len(os.listdir("/proc/self/task")) == 1


def _become_daemon(request: Mapping[str, Any], pipes: list[int], connection: socket.socket) -> NoReturn:
    """In the child: PySpark's daemon, with the pipes, variables and paths of the door."""
    status = 1
    try:
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        for pipe in pipes:
            os.close(pipe)
        # The door sees the daemon's end by this connection, which is therefore not for the daemon's children.
        os.register_at_fork(after_in_child=connection.close)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        known = {sys.path[0], *_named_paths()}
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        front = [os.getcwd(), *_named_paths()]  # as `python -m` has it
        sys.path[:] = front + [path for path in sys.path if path not in {*known, *front}]
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
        sys.stdout, sys.stderr = _unbuffered(1), _unbuffered(2)
        daemon = importlib.import_module("pyspark.daemon")
        sys.argv = [str(daemon.__file__), *request["arguments"]]
        daemon.manager()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # nobody above would tell
        traceback.print_exc()
    finally:
        os._exit(status)


def _named_paths() -> list[str]:
    named = os.environ.get("PYTHONPATH", "")
    return [os.path.abspath(each) for each in named.split(os.pathsep) if each]


def _unbuffered(number: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), errors="backslashreplace", write_through=True)


if __name__ == "__main__":
    door_directory = Path(sys.argv[2])
    try:
        main(socket.socket(fileno=int(sys.argv[1])))
    finally:
        shutil.rmtree(door_directory, ignore_errors=True)
