"""Random histories: message delays and losses, kills, power losses, cuts, pauses, snapshots."""

from __future__ import annotations

import pytest

from tests.quorum.swarm import play


@pytest.mark.parametrize("first", range(1, 25, 8))
def test_nothing_committed_is_lost_whatever_happens(first: int) -> None:
    for seed in range(first, first + 8):
        try:
            play(seed)
        except AssertionError as error:
            command = f"python -c 'from tests.quorum.swarm import play; play({seed})'"
            raise AssertionError(f"seed {seed}: {error}; replay it with {command}") from error
