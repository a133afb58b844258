"""How a node begins and ends while its disk takes its time."""

from __future__ import annotations

from tidelog.sim.cluster import SimulatedCluster

SLOW_MS = 2_000


def two(*, is_clean: bool) -> SimulatedCluster:
    """Both vote, and both serve clients; they were stopped, or killed."""
    cluster = SimulatedCluster(1, settings={}, brokers=(1, 2), controllers=(1, 2), directories=2)
    cluster.start_all()
    world = cluster.world
    for node_id in (1, 2):
        (world.stop if is_clean else world.kill)(node_id)
    assert world.run_until(lambda: not any(cluster.process(node_id).alive for node_id in (1, 2)))
    return cluster


def test_a_node_takes_no_part_in_elections_before_it_has_begun() -> None:
    """Seed 603071 of a hunt: its disk was slow, it was elected before the marks of its clean stop were gone, and then
    began, with the role that it had had when it stopped; its controller never heard that it no longer leads."""
    cluster = two(is_clean=False)
    world = cluster.world
    world.hosts[1].disks[1].delay_ms = SLOW_MS
    already_told = len(world.told)
    world.start(2)
    world.start(1)
    world.run_for(SLOW_MS - 100)
    assert {node_id for _, node_id, one in world.told[already_told:] if one.kind == "quorum-leader"} == {2}
    world.hosts[1].disks[1].delay_ms = 0
    assert world.run_until(lambda: cluster.is_running(1) and cluster.is_running(2))
    for node_id in (1, 2):
        own = cluster.process(node_id).node.cluster
        assert own.controller is not None
        assert own.controller.active is own.quorum.is_leader


def test_a_node_that_is_stopped_before_it_has_begun_does_not_begin() -> None:
    """It would register while it stops, after it was marked as cleanly stopped in the life before."""
    cluster = two(is_clean=True)
    world = cluster.world
    world.hosts[1].disks[1].delay_ms = SLOW_MS
    already_told = len(world.told)
    world.start(2)
    world.start(1)
    world.run_for(10)
    process = cluster.process(1)
    world.stop(1)
    assert world.run_until(lambda: not process.alive)
    assert world.halts[-1] == (1, 0)
    assert process.node.lifecycle.broker_epoch == -1
    assert {one.kind for _, node_id, one in world.told[already_told:] if node_id == 1} == {"stopping"}
