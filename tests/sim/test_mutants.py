"""Mutants fit the code they patch, leave nothing behind, and the quick ones are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.sim import mutants, swarm
from tidelog.sim.budget import Budget
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.mutants.base import Hunt
from tidelog.sim.mutants.workloads import fast_leader_changes, restless_quorum
from tidelog.sim.shape import Shape


@pytest.mark.parametrize("name", mutants.ALL)
def test_a_mutant_patches_what_is_there_and_leaves_nothing_behind(name: str) -> None:
    mutant = mutants.ALL[name]
    originals = [getattr(place, attribute) for place, attribute, _ in mutant.patches]
    with mutant.put_in():
        for (place, attribute, _), original in zip(mutant.patches, originals, strict=True):
            assert getattr(place, attribute) is not original
    assert [getattr(place, attribute) for place, attribute, _ in mutant.patches] == originals


def test_whoever_is_not_found_yet_is_a_mutant_by_name() -> None:
    assert set(mutants.ALL) >= mutants.NOT_FOUND_YET
    assert set(mutants.PROVEN) == set(mutants.ALL) - mutants.NOT_FOUND_YET


def test_a_patch_that_breaks_by_itself_is_not_taken_for_a_bug_that_was_found() -> None:
    hunt = Hunt(seeds=1, checker="NodesGoOn", finding="TypeError: f() takes 2 positional arguments", executed=3)
    assert not hunt.is_proven
    assert "does not fit" in hunt.complaint


@pytest.mark.parametrize("name", ["metadata-applied-early", "snapshot-one-short", "growth-not-waited-for"])
def test_a_quick_one_is_found(name: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(300_000, 300_006))
    assert hunt.is_proven, hunt.complaint


@pytest.mark.parametrize("workload", [fast_leader_changes, restless_quorum])
def test_a_named_workload_is_clean_and_changes_leaders(workload: Callable[[int], Shape]) -> None:
    outcome = swarm.run(300_000, shape=workload(300_000))
    assert not outcome.finding
    changes = outcome.seen["leader-elected"] if workload is fast_leader_changes else outcome.seen["controller change"]
    assert changes >= 3


def test_the_budget_takes_nothing_while_nobody_alive_knows_where_the_replicas_are() -> None:
    shape = next(one for one in map(fast_leader_changes, range(300_000, 300_100)) if not one.is_beyond_budget)
    cluster = SimulatedCluster(shape.seed, settings=shape.settings, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    assert cluster.newest_image().topic("t0") is None
    assert not Budget(cluster, shape, ()).take(1)
