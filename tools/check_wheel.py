"""Install a wheel alone into an empty environment, without Spark and without this tree, and run a node from it.

python tools/check_wheel.py dist/tidelog-0.1.0-py3-none-any.whl
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

COMMAND_TIMEOUT_S = 600
ALLOWED = {"crc32c", "cramjam", "pip", "setuptools", "tidelog"}
"""What may be in the environment afterwards: the broker alone is small."""
BIGGEST_WHEEL_BYTES = 2_000_000


class CheckFailed(Exception):
    """The wheel does not work alone; the text says what went wrong."""


def run(*command: str | Path, stdin: str = "") -> str:
    """Run a command outside the tree and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
        cwd=tempfile.gettempdir(),
        env=environment,
    )
    if done.returncode != 0:
        raise CheckFailed(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(wheel: Path, directory: Path) -> Path:
    """An empty environment with nothing but the wheel and what it asks for; its bin directory."""
    venv.EnvBuilder(with_pip=True, symlinks=True).create(directory)
    binaries = directory / "bin"
    patience = ("--retries", "10", "--timeout", "60")
    run(binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *patience, wheel)
    listed = run(binaries / "python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    extra = {line.partition("==")[0].lower() for line in listed.split()} - ALLOWED
    if extra:
        raise CheckFailed(f"the broker alone brings more than it needs: {', '.join(sorted(extra))}")
    return binaries


def free_port() -> int:
    """A port of this machine nobody listens on, and that no outgoing connection is given before the node starts."""
    for port in random.SystemRandom().sample(range(20_000, 22_700), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise CheckFailed("no free port")


def use(binaries: Path, data: Path) -> None:
    """Start a node, write a record, read it back, stop the node."""
    tidelog = binaries / "tidelog"
    bootstrap = f"127.0.0.1:{free_port()}"
    ready = run(tidelog, "up", "--nodes", "1", "--port", bootstrap.partition(":")[2], "--dir", data, "--detach")
    if ready.strip() != f"ready bootstrap={bootstrap}":
        raise CheckFailed(f"tidelog up printed {ready!r}")
    try:
        run(tidelog, "topics", "create", "hello", "--bootstrap", bootstrap)
        run(tidelog, "produce", "hello", "--bootstrap", bootstrap, stdin="high tide\n")
        found = run(tidelog, "consume", "hello", "--bootstrap", bootstrap, "--max", "1")
        if "high tide" not in found:
            raise CheckFailed(f"tidelog consume printed {found!r}")
    finally:
        run(tidelog, "down", "--dir", data)


def check(wheel: Path) -> str:
    """Everything; one line of what was shown."""
    size = wheel.stat().st_size
    if size > BIGGEST_WHEEL_BYTES:
        raise CheckFailed(f"{wheel.name} has {size:,} bytes, more than {BIGGEST_WHEEL_BYTES:,}")
    with tempfile.TemporaryDirectory(prefix="tidelog-wheel-") as scratch:
        binaries = install(wheel.resolve(), Path(scratch) / "environment")
        version = run(binaries / "tidelog", "--version").strip()
        use(binaries, Path(scratch) / "data")
    return f"{version}: {wheel.name} ({size / 1000:,.0f} kB) installs alone, starts a node, writes and reads"


def main() -> int:
    """The command."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(check(Path(sys.argv[1])))
    except CheckFailed as failure:
        print(f"make dist-check: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
