"""Mutated frames from the network: the node neither dies nor leaks, and a healthy client beside it never fails."""

from __future__ import annotations

import os
import random

from tests.support import fuzz_run
from tests.support.nodes import Node

NODE_PROPERTIES = fuzz_run.NODE_PROPERTIES
FRAMES = 20_000


def test_twenty_thousand_mutated_frames(node: Node) -> None:
    # Where a change is checked, the same frames every time: chance is for whoever looks for more.
    drawn = 1 if "CI" in os.environ else random.SystemRandom().randrange(1_000_000)
    seed = int(os.environ.get("TIDELOG_FUZZ_SEED") or drawn)
    tally = fuzz_run.fuzz(node, seed, FRAMES)
    assert tally.frames == FRAMES
    assert tally.answered > 1_000, "most mutated frames leave a connection on which the next request is answered"
    assert tally.closed > 1_000
