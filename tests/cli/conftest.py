"""Running the command inside the test's own process: as typed, with what was printed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidelog.cli import main


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Tidelog = Callable[..., Outcome]


SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture(autouse=True)
def source_tree_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts run this source tree and never an installed release."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")])))


@pytest.fixture
def tidelog(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Tidelog:
    """Runs `tidelog WORDS…` and returns exit code, output and errors."""
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", "127.0.0.1:1")

    def run(*words: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in words])
        captured = capsysbinary.readouterr()
        return Outcome(int(code), captured.out.decode(), captured.err.decode())

    return run
