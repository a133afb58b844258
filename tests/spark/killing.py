"""A driver of `land` as a process of its own, killed with SIGKILL at a moment that its own files tell."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.nodes import Node
from tests.support.processes import ManagedProcess, process_tree

START_S = 300.0
"""Spark on a busy machine may take its time."""


def start_land(node: Node, topic: str, path: Path, *options: str) -> ManagedProcess:
    """`tidelog pipeline land`, with Spark's log beside the lake."""
    command = [sys.executable, "-m", "tidelog", "pipeline", "land", "--bootstrap", node.bootstrap, "--topics", topic]
    command += ["--path", str(path), "--master", "local[2]", "--spark-log", f"{path}.spark.log", *options]
    return ManagedProcess(command, path.with_name(f"{path.name}.log"))


def kill_when(process: ManagedProcess, is_time: Callable[[], bool], what: str) -> None:
    """SIGKILL of the driver, its JVM and its workers while something is so: they are halted, and it is looked again."""
    deadline = time.monotonic() + START_S
    while True:
        if is_time():
            _signal(process, signal.SIGSTOP)
            if is_time():
                process.kill()
                return
            _signal(process, signal.SIGCONT)  # it was over before they stood still
        if time.monotonic() > deadline:
            raise process.fail(f"not within {START_S} s: {what}")
        process.require_running()
        time.sleep(0.001)


def _signal(process: ManagedProcess, number: signal.Signals) -> None:
    for pid in process_tree(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def table_version(path: Path, table: str = "records") -> int:
    """The newest version of a Delta table, -1 before the first."""
    return max((int(each.stem) for each in (path / table / "_delta_log").glob("[0-9]*.json")), default=-1)


def committed_batch(path: Path) -> int:
    """The last batch that the stream itself knows to be done, -1 before the first."""
    commits = path / "_state" / "checkpoint" / "commits"
    return max((int(each.name) for each in commits.glob("[0-9]*")), default=-1)


def planned_batch(path: Path) -> int:
    """The last batch that the stream has begun."""
    offsets = path / "_state" / "checkpoint" / "offsets"
    return max((int(each.name) for each in offsets.glob("[0-9]*")), default=-1)
