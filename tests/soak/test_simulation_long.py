"""Simulated histories for as long as told, and two hundred of them twice."""

from __future__ import annotations

import os
import time

from tests.sim.test_swarm import trace_hashes
from tidelog.sim.tally import Tally, play

REPEATED = 200
SHARE = 0.2
"""Of the time of all soak tests."""


def test_two_hundred_seeds_have_one_history_each() -> None:
    first = int(time.time()) % 10**6 * 1000
    seeds = range(first, first + REPEATED)
    assert trace_hashes(seeds, "1") == trace_hashes(seeds, "2"), seeds


def test_histories_nobody_has_played_before_keep_every_promise(minutes: float) -> None:
    first = int(time.time()) % 10**6 * 100_000
    until = time.monotonic() + minutes * 60 * SHARE
    tally = Tally()
    findings = []
    seed = first
    while time.monotonic() < until:
        batch = range(seed, seed + 20)
        for outcome in play(batch, min(2, os.cpu_count() or 1)):
            tally.add(outcome)
            if outcome.finding:
                findings.append(f"{outcome.finding}\nreplay: {outcome.replay_command}")
        seed = batch.stop
    print("\n".join(tally.lines(0)))
    assert not findings, "\n".join(findings)
