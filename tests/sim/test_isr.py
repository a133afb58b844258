"""Who is in the ISR: a follower comes back by keeping up, not by having been thrown out."""

from __future__ import annotations

from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan


def test_a_silent_follower_stays_out_where_nothing_more_can_be_committed() -> None:
    """It has all that is committed, and below min.insync.replicas it always will; the ISR must not go to and fro."""
    stage = SimulatedStage(1)
    stage.start(Plan((1, 2), (9,), {"replica.lag.time.max.ms": "1000"}))
    assert stage.create_topic("events", [[1, 2]], {"min.insync.replicas": "2"}) == ""
    stage.add_producer("p", {"acks": "1"})
    stage.wait(200)
    stage.hold(1, 2, "data")
    stage.send("p", "events", 0, "M0")
    stage.take_told()
    stage.wait(10_000)
    changes = [told.fields["isr"] for told in stage.take_told() if told.kind == "isr-changed"]
    assert changes == [[1]]
    stage.release(1, 2, "data")
    stage.wait(1_000)
    assert stage.partition("events", 0).isr == (1, 2)
