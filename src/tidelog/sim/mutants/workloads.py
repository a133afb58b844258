"""Named workloads for bugs that need a rare order of events: the swarm's drawing, with a plan of its own in places.

Only the plan is narrower. Clients, checkers, budget and the liveness phase are the swarm's, and the seed still decides.
"""

from __future__ import annotations

from dataclasses import replace

from tidelog.outbox import Chance
from tidelog.sim.shape import (
    FIRST_CONTROLLER,
    SAFETY_MS,
    Fault,
    ProducerShape,
    Shape,
    TopicShape,
    draw,
    pick,
)

BOTH = ("data", "control")


def fast_leader_changes(seed: int) -> Shape:
    """Two replicas that lead in turn, each for a moment and without the other (KIP-279).

    Both must be in sync to commit, so whoever is away stays eligible; producers do not wait for the other.
    """
    chance = Chance(seed * 2 + 1)
    topic = TopicShape("t0", ((1, 2),), 2, None, pick(chance, (2_000, 20_000)))
    producers = tuple(
        ProducerShape(f"p{number}", acks, False, topic.name, 0, 20 + chance.below(40))
        for number, acks in enumerate(("1", "all"))
    )
    faults = []
    at_ms = 1_000
    while at_ms < SAFETY_MS - 8_000:
        # The first leader goes with records that the other has not; the other leads alone, and goes before it is back.
        faults.append(Fault(at_ms, "strand", (1,), 3_500 + chance.below(1_000), BOTH, 3, 0))
        at_ms += 2_800 + chance.below(1_500)
        faults.append(Fault(at_ms, "kill", (2,), 4_000 + chance.below(2_000), BOTH, 1, 0))
        at_ms += 5_000 + chance.below(3_000)
    shape = draw(seed)
    return replace(
        shape,
        brokers=(1, 2),
        controllers=tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + 3)),
        settings={**shape.settings, "broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"},
        topics=(topic,),
        producers=producers,
        consumers=((topic.name, 0),),
        admin=(),
        faults=tuple(faults),
        racks={},
        is_beyond_budget=False,
        directories=1,
        min_isr_changes=(),
        poll_ms=(0,),
        absent=-1,
        work=None,
    )
