"""Ports for tests: a node that was given one port twice could not start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ports


def test_ports_are_different_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from so few that chance alone would give one twice: it did, once in ten thousand nodes."""
    monkeypatch.setattr(ports, "LOWEST", ports.HIGHEST - 50)
    found = [port for _ in range(5) for port in ports.free_ports(3)]
    assert len(set(found)) == 15


def test_two_processes_are_not_given_the_same_port() -> None:
    """Though nobody listens there: a node that was killed is to come back."""
    (port,) = ports.free_ports(1)
    narrow = f"from tests.support import ports; ports.LOWEST, ports.HIGHEST = {port}, {port + 1}; ports.free_ports(1)"
    other = subprocess.run([sys.executable, "-c", narrow], check=False, capture_output=True, text=True)
    assert "no 1 free ports" in other.stderr
