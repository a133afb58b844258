"""What the system knows about processes: whether the one we started still runs, and what it weighs.

A pid alone proves nothing, because the system gives it to another process later. A process is therefore named by its
pid and the moment it started, and every signal is sent only after both were compared.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

_HAS_PROC = sys.platform.startswith("linux")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_POLL_SECONDS = 0.01


class ProcessName(NamedTuple):
    """A process that no other process will ever be taken for."""

    pid: int
    started: str

    @property
    def state(self) -> str:
        """`running`, `paused` (stopped by a signal), or `gone`; a zombie is gone."""
        letter, started = _inspect(self.pid)
        if started != self.started or letter in ("Z", "X", ""):
            return "gone"
        return "paused" if letter in ("T", "t") else "running"

    def signal(self, number: int) -> None:
        """Signal it if it is still itself; gone already is fine."""
        if self.state != "gone":
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def kill_group(self) -> None:
        """SIGKILL it and its helpers, which share its process group."""
        self.signal_group(signal.SIGKILL)

    def signal_group(self, number: int) -> None:
        """Signal it and its helpers, if it is still itself."""
        if self.state != "gone":
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                self.signal(number)

    def pause_group(self, timeout_ms: int) -> bool:
        """SIGSTOP it and its helpers. The system stops a process that runs a moment later, which is waited for."""
        self.signal_group(signal.SIGSTOP)
        deadline = time.monotonic() + timeout_ms / 1000
        while (state := self.state) == "running" and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return state == "paused"


def name_process(pid: int) -> ProcessName:
    """The full name of a process that runs now (a child just started, or oneself)."""
    return ProcessName(pid, _inspect(pid)[1])


def wait_until_gone(processes: Iterable[ProcessName], timeout_ms: int) -> list[ProcessName]:
    """Wait for processes to end; those still there after the timeout come back."""
    deadline = time.monotonic() + timeout_ms / 1000
    waiting = list(processes)
    while True:
        waiting = [process for process in waiting if process.state != "gone"]
        if not waiting or time.monotonic() >= deadline:
            return waiting
        time.sleep(_POLL_SECONDS)


def group_memory_bytes(leaders: Iterable[int]) -> dict[int, int]:
    """Resident memory of each process group: a node and its helpers together."""
    totals = dict.fromkeys(leaders, 0)
    if not _HAS_PROC:
        for line in _ps("-A", "-o", "pgid=,rss=").splitlines():
            group, kilobytes = line.split()
            if int(group) in totals:
                totals[int(group)] += int(kilobytes) * 1024
        return totals
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat_fields(entry)
            if len(fields) > 21 and int(fields[2]) in totals:
                totals[int(fields[2])] += int(fields[21]) * _PAGE_BYTES
    return totals


def _inspect(pid: int) -> tuple[str, str]:
    """State letter and start moment of a process; two empty texts when there is none."""
    if not _HAS_PROC:
        letter, _, started = _ps("-p", str(pid), "-o", "state=,lstart=").strip().partition(" ")
        return letter[:1], started.strip()
    fields = _stat_fields(str(pid))
    if len(fields) < 20:
        return "", ""
    # Ticks since boot repeat after a reboot, when a state file may still lie about; the boot's own id does not.
    return fields[0], f"{_boot_id()}:{fields[19]}"


def _stat_fields(pid: str) -> list[str]:
    """Fields of /proc/PID/stat from the third (state) on; the second, the name, may hold spaces and brackets."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
