"""Groups in simulated histories: members of both protocols read everything, and bugs are found."""

from __future__ import annotations

import pytest

from tidelog.sim import mutants
from tidelog.sim.checkers import ALL
from tidelog.sim.committing import GroupNotes
from tidelog.sim.mutants.coordination_workloads import sleepy_members
from tidelog.sim.swarm import _Run
from tidelog.sim.work_shape import CLASSIC, CONSUMER


def protocols(seed: int) -> set[str]:
    work = sleepy_members(seed).work
    assert work is not None
    return {one.protocol for one in work.members}


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_members_share_the_partitions_and_take_over_from_each_other(protocol: str) -> None:
    seed = next(one for one in range(300_000, 300_100) if protocols(one) == {protocol})
    run = _Run(sleepy_members(seed), ALL)
    assert not run.play().finding
    assert run._work is not None
    for notes in run._work.groups.values():
        assert len({generation for generation, _ in notes.owners}) >= 3
        assert len(set(notes.owners.values())) >= 2
        assert min(notes.acknowledged.values()) > 0


def test_a_quick_bug_of_groups_is_found() -> None:
    hunt = mutants.hunt(mutants.ALL["offsets-expired-too-early"], range(300_000, 300_006))
    assert hunt.is_proven, hunt.complaint


def test_a_partition_with_two_owners_in_a_generation_is_noted() -> None:
    notes = GroupNotes("g")
    notes.owns(1, 0, "a")
    notes.owns(2, 0, "b")
    notes.owns(1, 0, "a")
    assert not notes.two_owners
    notes.owns(2, 0, "a")
    assert notes.two_owners
