"""A million mutated frames: the node neither dies nor leaks, and a healthy client beside it never fails."""

from __future__ import annotations

import os
import random

from tests.support import fuzz_run
from tests.support.nodes import Node

NODE_PROPERTIES = fuzz_run.NODE_PROPERTIES
FRAMES = int(os.environ.get("TIDELOG_FUZZ_FRAMES", "1000000"))


def test_a_million_mutated_frames(node: Node) -> None:
    seed = int(os.environ.get("TIDELOG_FUZZ_SEED") or random.SystemRandom().randrange(1_000_000))
    tally = fuzz_run.fuzz(node, seed, FRAMES)
    assert tally.frames == FRAMES
