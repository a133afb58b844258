"""A measurement in a process of its own: what one leaves behind in memory and threads is no part of the next."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_SHOWN_CHARACTERS = 4_000
"""Of each stream of a process that failed: Spark says a lot."""


class Failed(Exception):
    """A measurement could not be made."""


def measure_apart(module: str, *words: object, timeout_s: float = 1800) -> dict[str, Any]:
    """Run `python -m MODULE WORDS`; what it measured is the last line it prints, as JSON."""
    line = [sys.executable, "-m", module, *map(str, words)]
    outcome = subprocess.run(line, capture_output=True, text=True, check=False, timeout=timeout_s)
    if outcome.returncode != 0:
        said = outcome.stdout[-_SHOWN_CHARACTERS:] + outcome.stderr[-_SHOWN_CHARACTERS:]
        raise Failed(f"{' '.join(line)}\n{said}")
    answer: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
    return answer


def options(**arguments: object) -> list[str]:
    """Arguments as options of a command line: `warm_up=3` is `--warm-up 3`."""
    return [word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", str(value))]
