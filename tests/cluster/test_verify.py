"""`tidelog verify`, as a user runs it; a minute of it is in test_minutes.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_ports
from tidelog.cli import main
from tidelog.verify import run


def verify(directory: Path, *options: str, timeout_s: float) -> tuple[int, dict[str, Any], str]:
    """Run it and return its exit code, its report and what it said besides."""
    command = [sys.executable, "-m", "tidelog", "verify", "--json", "--dir", str(directory), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout), ended.stderr


def test_an_unknown_fault_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidelog", "verify", "--chaos", "kil", "--dir", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "did you mean 'kill'?" in ended.stderr


def test_a_cluster_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "_ADMIN_TIMEOUT_S", 0.3)
    (port,) = free_ports(1)
    assert main(["verify", "--bootstrap", f"127.0.0.1:{port}", "--dir", str(tmp_path / "proof")]) == 3
    assert capsys.readouterr().err.startswith(f"tidelog verify: no broker answers at 127.0.0.1:{port}: ")


def test_without_the_client_library_it_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        f"from tidelog.cli import main; sys.exit(main(['verify', '--dir', {str(tmp_path)!r}]))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "tidelog verify: needs the package confluent-kafka: pip install confluent-kafka"
    ]
