"""Runs the tests: those that compute, of the pure rooms and of Spark, beside those that wait for real clusters.

Arguments go to pytest, which then runs alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

COMPUTING = (
    *("tests/controller", "tests/coordination", "tests/groups", "tests/log", "tests/node", "tests/quorum"),
    *("tests/replica", "tests/wire", "tests/test_source.py", "tests/test_storage_contract.py", "tests/sim"),
    "tests/spark",
)
"""All but the last need no ports and no clock. Simulated histories are played beside the first of them."""
NICENESS = 5
"""Real clusters go first: they have timeouts."""
PYTEST = (sys.executable, "-m", "pytest")


def main() -> int:
    """Run both parts, and return the exit code of the first that failed."""
    if sys.argv[1:]:
        return subprocess.call([*PYTEST, *sys.argv[1:]])
    with tempfile.TemporaryFile() as output:
        beside = subprocess.Popen([*PYTEST, *COMPUTING], stdout=output, stderr=subprocess.STDOUT)
        try:
            os.setpriority(os.PRIO_PROCESS, beside.pid, NICENESS)
            code = subprocess.call([*PYTEST, *(f"--ignore={each}" for each in COMPUTING)])
            print("\nThe pure rooms and Spark, beside it:", flush=True)
            code_beside = beside.wait()
        except BaseException:
            beside.terminate()
            beside.wait()
            raise
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    return code or code_beside


if __name__ == "__main__":
    sys.exit(main())
