"""Moving partitions between brokers that do not all know of it at the same moment."""

from __future__ import annotations

from tidelog.sim.client import Admin
from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan


def test_a_new_replica_that_hears_of_it_before_the_leader_still_joins() -> None:
    """Nothing is written, so it has nothing more to ask: the leader must not have missed what it has (seed 28)."""
    stage = SimulatedStage(1)
    stage.start(Plan((1, 2, 3), (9,), {}))
    assert stage.create_topic("events", [[3, 2]], {}) == ""
    stage.wait(500)
    stage.hold(9, 3, "control")
    admin = Admin(stage.cluster.world, "admin", [1, 2])
    answers: list[object] = []
    admin.reassign("events", 0, [1, 3], answers.append)
    stage.wait(1_000)
    assert answers, "the controller has not decided yet"
    assert stage.cluster.process(1).node.replicas.partitions["events", 0].leader_id == 3
    assert stage.cluster.process(3).node.image.topic("events").partitions[0].replicas == (3, 2)  # type: ignore[union-attr]
    stage.release(9, 3, "control")
    assert stage.wait_until(lambda: stage.partition("events", 0).replicas == (1, 3), 10_000)
    assert set(stage.partition("events", 0).isr) == {1, 3}


def test_the_end_of_a_reassignment_is_not_told_as_an_unclean_election() -> None:
    """The new leader joins the ISR in the very change that makes it lead."""
    stage = SimulatedStage(1)
    stage.start(Plan((1, 2, 3), (9,), {}))
    assert stage.create_topic("events", [[3, 2]], {}) == ""
    stage.wait(500)
    stage.take_told()
    Admin(stage.cluster.world, "admin", [1, 2]).reassign("events", 0, [1], lambda _: None)
    assert stage.wait_until(lambda: stage.partition("events", 0).replicas == (1,), 10_000)
    elected = [told.fields for told in stage.take_told() if told.kind == "leader-elected"]
    assert [(one["leader"], one["unclean"]) for one in elected] == [(1, False)]
