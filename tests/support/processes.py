"""One process started by us: its log kept, its children counted, its end certain."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_running: dict[int, ManagedProcess] = {}


class ProcessFailed(AssertionError):
    """A process ended, or did not do in time what was waited for; the text has the end of its log."""


def _die_with_parent() -> None:
    """Runs in the child before exec: a test run that is killed leaves no node behind."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class ManagedProcess:
    """A running process whose standard output and error go to one log file."""

    def __init__(self, command: Sequence[str], log_file: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.log_file = log_file
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of C, loaded before: it takes no lock
            )
        self.pid = self._process.pid
        _running[self.pid] = self

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def fail(self, what: str) -> ProcessFailed:
        """An error that shows what the process last said."""
        return ProcessFailed(f"{what}\n  command: {' '.join(self.command)}\n  end of {self.log_file}:\n{self.tail()}")

    def require_running(self) -> None:
        """Raise, with the log, when it has ended."""
        if self.exit_code is not None:
            raise self.fail(f"process {self.pid} ended with code {self.exit_code}")

    def wait(self, timeout_s: float) -> int:
        """Its exit code, or ProcessFailed when it does not end in time."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.fail(f"process {self.pid} did not end within {timeout_s} s") from None
        _running.pop(self.pid, None)
        return code

    def ask_to_stop(self) -> None:
        """SIGTERM, without waiting."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, timeout_s: float = 60.0) -> int:
        """Ask it to end and wait; one that does not is killed and reported."""
        self.ask_to_stop()
        try:
            return self.wait(timeout_s)
        except ProcessFailed:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL it and its children, and wait until it is gone."""
        for pid in reversed(process_tree(self.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(60)
        _running.pop(self.pid, None)


def process_tree(pid: int) -> list[int]:
    """The process and everything it started, parents first; what has ended meanwhile is left out."""
    found = [pid]
    for each in found:
        try:
            for thread in os.listdir(f"/proc/{each}/task"):
                children = Path(f"/proc/{each}/task/{thread}/children").read_text()
                found.extend(int(child) for child in children.split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def resident_bytes(pid: int) -> int:
    """Memory in RAM of the process and everything it started."""
    total = 0
    for each in process_tree(pid):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * PAGE_BYTES
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def cpu_seconds(pid: int) -> float:
    """CPU time used so far by the process and everything it started that still runs."""
    total = 0
    for each in process_tree(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_SECOND


def open_files(pid: int) -> int:
    """How many file descriptors the process holds."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Call `condition` until it is true; AssertionError naming `what` when it stays false."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.01)


@atexit.register
def _end_what_is_left() -> None:
    for process in list(_running.values()):
        process.kill()
