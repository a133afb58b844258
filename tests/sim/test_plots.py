"""Faults of several acts: each is played to its end, leaves all well, and shows the bug that it is aimed at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.sim import mutants, swarm
from tidelog.sim.shape import Fault, ProducerShape, Shape, TopicShape, draw

SEED = 8
AIMED_AT = {
    "blackout": "epoch-start-ignored",
    "amnesia": "stale-broker-epoch-in-isr",
    "stale proposal": "no-partition-epoch-check",
    "usurper": "slice-sent-after-truncation",
    "new voter": "wiped-voter-votes",
}


def plotted(kind: str) -> Shape:
    """Three brokers, three controllers, and one plot again and again."""
    shape = draw(SEED)
    topic = TopicShape("t0", ((1, 2, 3),), 2, None, 1 << 20)
    producers = tuple(ProducerShape(f"p-{acks}", acks, False, topic.name, 0, 40) for acks in ("all", "1"))
    faults = tuple(
        Fault(1_500 + 2_800 * number, kind, (1,), 300 + 137 * number, ("data", "control"), 3, 0) for number in range(4)
    )
    timing = {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "300",
        "replica.lag.time.max.ms": "700",
    }
    return replace(
        shape,
        brokers=(1, 2, 3),
        controllers=(11, 12, 13),
        settings={**shape.settings, **timing},
        topics=(topic,),
        producers=producers,
        consumers=((topic.name, 0),),
        admin=(),
        faults=faults,
        racks={},
        is_beyond_budget=False,
        poll_ms=(0,),
        absent=-1,
        work=None,
        safety_ms=13_000,
    )


@pytest.mark.parametrize("kind", AIMED_AT)
def test_a_plot_is_played_and_leaves_all_well(kind: str) -> None:
    outcome = swarm.run(SEED, shape=plotted(kind))
    assert not outcome.finding
    assert outcome.faults >= 2


@pytest.mark.parametrize(("kind", "name"), AIMED_AT.items())
def test_a_plot_shows_the_bug_that_it_is_aimed_at(kind: str, name: str) -> None:
    mutant = mutants.ALL[name]
    with mutant.put_in():
        outcome = swarm.run(SEED, shape=plotted(kind))
    assert outcome.finding
    assert mutant.executed
