from __future__ import annotations

import pytest

from tidelog.sim.disk import SimulatedDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()
