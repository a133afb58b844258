"""Ports for tests: a node that was given one port twice could not start."""

from __future__ import annotations

import pytest

from tests.support import ports


def test_ports_are_different_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from so few that chance alone would give one twice: it did, once in ten thousand nodes."""
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "LOWEST", ports.HIGHEST - 50)
    found = [port for _ in range(5) for port in ports.free_ports(3)]
    assert len(set(found)) == 15
