"""What must be well again after faults, and what nobody can make well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.controller.entities import Partition
from tidelog.sim import swarm
from tidelog.sim.checkers import History
from tidelog.sim.checkers.nodes import NodesGoOn
from tidelog.sim.checkers.observer import Observer
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.faults import Faults
from tidelog.sim.liveness import Wishes
from tidelog.sim.mutants.workloads import fast_leader_changes
from tidelog.sim.shape import Fault, Shape


def shape_and_cluster() -> tuple[Shape, SimulatedCluster]:
    shape = next(one for one in map(fast_leader_changes, range(300_000, 300_100)) if not one.is_beyond_budget)
    cluster = SimulatedCluster(shape.seed, settings=shape.settings, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    return shape, cluster


@pytest.mark.parametrize(
    ("may_lose", "isr", "rotten", "is_beyond_help"),
    [
        (False, (1, 2), (1,), False),
        (False, (1, 2), (1, 2), True),
        (False, (1,), (1,), False),
        (True, (1,), (1,), True),  # seed 204911: 2 is whole and lacks what rotted
        (True, (1, 2), (1,), False),
        (True, (), (1,), False),
    ],
)
def test_nobody_is_waited_for_who_can_only_copy_from_a_rotten_log(
    may_lose: bool, isr: tuple[int, ...], rotten: tuple[int, ...], is_beyond_help: bool
) -> None:
    shape, cluster = shape_and_cluster()
    history = History(cluster, replace(shape, topics=(replace(shape.topics[0], may_lose=may_lose),)))
    history.rotten = {(one, "t0", 0) for one in rotten}
    partition = Partition((1, 2), (bytes(16), bytes(16)), isr, 1 if isr else -1, 3, 4)
    assert Wishes(history)._is_rotten("t0", 0, partition) is is_beyond_help


def test_a_disk_that_is_full_again_is_not_forgotten_with_the_first_time() -> None:
    """Seed 911106 of a hunt: the second began within the moment in which the first was still excused."""
    shape, cluster = shape_and_cluster()
    faults = Faults(cluster, replace(shape, is_beyond_budget=True), lambda _: None)
    first = Fault(0, "full disk", (1,), 100, (), 1_999)
    faults._begin(first)
    cluster.world.run_for(120)
    faults._begin(replace(first, duration_ms=2_000))
    cluster.world.run_for(100)
    assert 1 in faults.disks.failing_disks
    cluster.world.run_for(2_500)
    assert 1 not in faults.disks.failing_disks


def test_a_node_that_ended_itself_is_excused_though_it_is_started_before_anybody_else_does_anything() -> None:
    """Seed 225371: its disk was full, it gave up, and the disk had room and it was started in the next millisecond."""
    shape, cluster = shape_and_cluster()
    world = cluster.world
    history = History(cluster, shape)
    failing = {1}
    history.failing_disks = failing
    observer = Observer(world, [NodesGoOn(history)])
    world.on_step, world.on_end = observer.after_step, observer.after_end
    disk = world.hosts[1].disks[0]
    disk.fail()
    assert world.run_until(lambda: bool(world.halts))
    disk.heal()
    failing.clear()
    world.start(1)
    world.run_for(500)
    assert [node_id for node_id, _ in world.halts] == [1]


@pytest.mark.parametrize("seed", [256_125, 258_905])
def test_nothing_is_concluded_while_a_node_is_slow_because_its_clock_was_set_back(seed: int) -> None:
    """It was taken for dead two hundred milliseconds after the only other broker was, and four before the end."""
    assert not swarm.run(seed).finding


def test_nobody_is_done_without_before_what_the_admin_asked_for_is_decided() -> None:
    """Seed 264808: the only replica died, and then the move of its partition began that was asked for before."""
    assert not swarm.run(264_808).finding
