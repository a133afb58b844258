"""What all tests share: no example database in the tree, no process left behind, and histories played beside others."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import hypothesis
import pytest

from tidelog.sim.swarm import Outcome
from tidelog.sim.tally import play

hypothesis.settings.register_profile("tidelog", database=None, deadline=None)
hypothesis.settings.load_profile("tidelog")

MARK = "TIDELOG_TEST_RUN"
"""Every process that a test starts inherits this variable, so that one which outlives the run is found."""
ENDING_S = 60.0
"""How long what was told to end, or lost the process it works for, may take."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    os.environ[MARK] = uuid.uuid4().hex
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A run in the background of a shell ignores Ctrl-C, and so would every command that a test means to interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.basetemp is None:
        # One of its own, removed at the end: pytest's shared one stays, and runs side by side clean up each other.
        config.option.basetemp = tempfile.mkdtemp(prefix="tidelog-tests-")
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


SEEDS = range(150)
PROCESSES = 2
"""More than one: with one, histories would be played in this process, which tests put bugs into."""


@pytest.fixture(scope="session")
def histories() -> Iterator[Future[list[Outcome]]]:
    """Simulated histories, under way in processes that everybody else goes before: they use what time others leave."""

    def play_all() -> list[Outcome]:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)  # of this thread, and of what it starts
        return list(play(SEEDS, PROCESSES))

    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(play_all)


@pytest.fixture(scope="session", autouse=True)
def histories_begun(request: pytest.FixtureRequest) -> None:
    """They begin with the first test of a run in which somebody waits for them, though that be the last."""
    if any("histories" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("histories")


def ends_with_this_process(folder: Path, command: str) -> bool:
    """Whether this is the helper that Python keeps beside a process that used a pool, as long as that process lives."""
    parent_pid = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return parent_pid == os.getpid() and "from multiprocessing.resource_tracker import main" in command


def processes_of_this_run() -> dict[int, str]:
    """Pid and command line of every other live process that a test has started (Linux; empty elsewhere)."""
    wanted = f"{MARK}={os.environ.get(MARK, '')}".encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            if pid != os.getpid() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if command and not ends_with_this_process(folder, command):
                    found[pid] = command
        except OSError:
            continue
    return found


def those_that_stay(
    within_s: float = ENDING_S, look: Callable[[], dict[int, str]] = processes_of_this_run
) -> dict[int, str]:
    """What still lives a little later: Spark's workers end by themselves, once they see that its JVM is gone."""
    deadline_s = time.monotonic() + within_s
    while (left := look()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return left


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    left = those_that_stay()
    if not left:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    for pid, command in left.items():
        if reporter is not None:
            reporter.write_line(f"left behind: process {pid}: {command}", red=True)
        os.kill(pid, signal.SIGKILL)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
