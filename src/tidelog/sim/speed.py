"""How fast histories are played: three nodes, a hundred records a second, faults on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from tidelog.sim import swarm
from tidelog.sim.shape import Shape, draw

NODES = 3
RECORDS_PER_SECOND = 100


def shapes() -> Iterator[Shape]:
    """What seeds with three brokers ask for, with as many records as the figure wants."""
    seed = 0
    while True:
        shape = draw(seed)
        seed += 1
        if len(shape.brokers) == NODES and not shape.through_bytes and shape.work is None:
            interval_ms = 1000 * len(shape.producers) // RECORDS_PER_SECOND
            producers = tuple(replace(one, interval_ms=interval_ms) for one in shape.producers)
            yield replace(shape, producers=producers, work=None)  # groups and transactions would write more than that


def race(seeds: int) -> tuple[float, float, int]:
    """Simulated seconds, seconds of one core, and findings of so many seeds."""
    simulated_ms, findings = 0, 0
    used = time.process_time()
    for shape, _ in zip(shapes(), range(seeds), strict=False):
        outcome = swarm.run(shape.seed, shape=shape)
        simulated_ms += outcome.simulated_ms
        findings += bool(outcome.finding)
    return simulated_ms / 1000, time.process_time() - used, findings
