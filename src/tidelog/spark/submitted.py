"""What Spark was told before a Python program starts it: by the variable PYSPARK_SUBMIT_ARGS and the file of defaults.

What a program sets itself goes before both, so a session that has defaults of its own must know what they name.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

_LINE = re.compile(r"\s*([^#!\s=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")
"""Of a file of properties: a name, and behind `=`, `:` or space its value."""


def told_before() -> dict[str, str]:
    """Settings of Spark by their names; the variable goes before the file, as it does for Spark."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master")
    parser.add_argument("--driver-memory")
    parser.add_argument("--properties-file")
    parser.add_argument("--conf", "-c", action="append", default=[])
    words, _ = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    found = _read(Path(words.properties_file) if words.properties_file else _defaults_file())
    found |= {name: value for name, equals, value in (each.partition("=") for each in words.conf) if equals}
    named = {"spark.master": words.master, "spark.driver.memory": words.driver_memory}
    return found | {name: value for name, value in named.items() if value}


def _defaults_file() -> Path:
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder:
        return Path(folder) / "spark-defaults.conf"
    installed = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (os.path.dirname(installed.origin or "") if installed else "")
    return Path(home) / "conf" / "spark-defaults.conf"


def _read(file: Path) -> dict[str, str]:
    with contextlib.suppress(OSError):
        matches = map(_LINE.fullmatch, file.read_text(errors="replace").splitlines())
        return {match[1]: match[2] for match in matches if match}
    return {}
