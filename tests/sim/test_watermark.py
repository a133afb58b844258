"""Followers learn the high watermark even when nothing more is written."""

from __future__ import annotations

import pytest

from tests.sim.test_three_nodes import started


@pytest.mark.parametrize("seed", range(3))
def test_an_idle_follower_learns_the_last_watermark(seed: int) -> None:
    """One that becomes leader with an old watermark would keep readers waiting for what they were already shown."""
    cluster = started(seed)
    cluster.produce(b"only")
    cluster.world.run_for(1_100)
    watermarks = [cluster.process(one).node.replicas.partitions["events", 0].high_watermark for one in (1, 2, 3)]
    assert watermarks == [1, 1, 1]
