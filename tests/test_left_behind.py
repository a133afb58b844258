"""The check for processes that outlive a run of the tests tells those that would from Python's own helper."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

from tests.conftest import processes_of_this_run, those_that_stay


def test_a_process_that_a_test_started_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        assert process.pid in processes_of_this_run()
    assert process.pid not in processes_of_this_run()


def test_the_tracker_of_a_pool_ends_with_this_process_and_is_none_of_them() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(abs, (-1,)) == 1
    commands = list(processes_of_this_run().values())
    assert not [command for command in commands if "resource_tracker" in command]


def test_a_process_that_is_about_to_end_is_waited_for() -> None:
    late = "import sys, time; sys.stdin.read(); time.sleep(0.3)"
    with subprocess.Popen([sys.executable, "-c", late], stdin=subprocess.PIPE) as ends:

        def look() -> dict[int, str]:
            """Others of this run may live on: Spark's, as long as there are tests."""
            return {pid: command for pid, command in processes_of_this_run().items() if pid == ends.pid}

        assert ends.pid in those_that_stay(within_s=0.1, look=look)
        assert ends.stdin is not None
        ends.stdin.close()
        assert those_that_stay(look=look) == {}
