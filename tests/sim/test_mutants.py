"""Mutants fit the code they patch, leave nothing behind, and the quick ones are found."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tidelog.controller.entities import RECOVERING, Partition
from tidelog.effects import Tell
from tidelog.sim import mutants, swarm
from tidelog.sim.budget import Budget
from tidelog.sim.checkers import History, Violation
from tidelog.sim.checkers.decisions import DecisionsFollowTheRules
from tidelog.sim.checkers.replay import Change
from tidelog.sim.checkers.story import EventsTellWhatHappened
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.mutants.base import Hunt
from tidelog.sim.mutants.workloads import fast_leader_changes


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


@pytest.mark.parametrize(
    "name",
    [
        "metadata-applied-early",
        "snapshot-one-short",
        "growth-not-waited-for",
        "stale-leader-epoch-accepted",
        "acks-all-at-append",
        "truncate-to-watermark",
    ],
)
def test_a_quick_one_is_found(name: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(300_000, 300_020))
    assert hunt.is_proven, hunt.complaint


def test_the_named_workload_is_clean_and_changes_leaders() -> None:
    outcome = swarm.run(300_000, shape=fast_leader_changes(300_000))
    assert not outcome.finding
    assert outcome.seen["leader-elected"] >= 3


def test_the_budget_takes_nothing_while_nobody_alive_knows_where_the_replicas_are() -> None:
    shape = next(one for one in map(fast_leader_changes, range(300_000, 300_100)) if not one.is_beyond_budget)
    cluster = SimulatedCluster(shape.seed, settings=shape.settings, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    assert cluster.newest_image().topic("t0") is None
    assert not Budget(cluster, shape, ()).take(1)


@pytest.mark.parametrize(("registered", "is_right"), [(frozenset({2}), True), (frozenset[int](), False)])
def test_the_last_known_leader_may_lead_when_the_only_eligible_one_came_back_with_less(
    registered: frozenset[int], is_right: bool
) -> None:
    directories = (bytes(16), bytes(16))
    before = Partition((4, 2), directories, (), -1, 8, 19, eligible_leader_replicas=(2,), last_known_elr=(4,))
    after = Partition((4, 2), directories, (4,), 4, 9, 20, RECOVERING)
    cluster = SimulatedCluster(1, settings={}, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    history = History(cluster, fast_leader_changes(300_000))
    history.replay.changes.append(Change(0, 1, "t0", 0, before, after, 2, registered, False))
    checker = DecisionsFollowTheRules(history)
    with nullcontext() if is_right else pytest.raises(Violation, match="neither in sync nor eligible"):
        checker.metadata_changed(cluster.process(1))


def test_what_a_controller_told_and_died_may_be_of_a_topic_that_was_made_again() -> None:
    """Seed 600791 of a hunt: its partition had had that epoch before, in another state, under another topic's id."""
    cluster = SimulatedCluster(1, settings={}, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    history = History(cluster, fast_leader_changes(300_000))
    directories = (bytes(16), bytes(16))
    made = Partition((1, 2), directories, (1, 2), 1, 0, 0)
    first, second = Partition((1, 2), directories, (1,), 1, 0, 1), Partition((1, 2), directories, (2,), 2, 0, 1)
    history.replay.changes.append(Change(0, 1, "t0", 0, made, first, 1, frozenset(), False))
    checker = EventsTellWhatHappened(history)
    checker.told()
    fields = {"topic": "t0", "partition": 0, "partition_epoch": 1, "leader": 2, "leader_epoch": 0, "isr": [2]}
    cluster.world.told.append((0, 11, Tell("isr-changed", fields)))
    cluster.world.kill(11)
    checker.told()
    with pytest.raises(Violation, match="not what was committed"):
        checker._read_on(is_end=True)
    checker._early.append((11, "isr-changed", fields))
    history.replay.changes.append(Change(9, 1, "t0", 0, made, second, 1, frozenset(), False))
    checker._read_on(is_end=True)
