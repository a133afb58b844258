"""Every story that is told of real processes, on real processes."""

from __future__ import annotations

import pytest

from tests.scenarios.test_real import MARKED, QUICK, play_for_real


@pytest.mark.parametrize("name", [name for name in MARKED.split() if name not in QUICK])
def test_it_happens_so_on_real_processes(name: str) -> None:
    play_for_real(name)
