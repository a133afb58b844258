"""Who may lead (KIP-966): in sync, else eligible, else the last known leader; uncleanly only where that is allowed."""

from __future__ import annotations

import pytest

from tests.controller.world import World
from tidelog.controller.entities import Partition


def state(partition: Partition) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return partition.leader, partition.isr, partition.eligible_leader_replicas


def three(min_insync_replicas: int = 2, **more: str) -> World:
    world = World((1, 2, 3, 4))
    world.create("t", replicas=[[1, 2, 3]], min_insync_replicas=str(min_insync_replicas), **more)
    return world


def test_above_min_isr_nobody_is_remembered() -> None:
    world = three()
    world.crash(1)
    assert state(world.partition()) == (2, (2, 3), ())


def test_below_min_isr_who_leaves_stays_eligible() -> None:
    world = three()
    world.crash(1)
    world.crash(2)
    assert state(world.partition()) == (3, (3,), (2,))
    world.crash(3)
    assert state(world.partition()) == (-1, (), (2, 3))
    assert world.partition().last_known_elr == (3,)
    world.check()


def test_an_eligible_replica_leads_cleanly_when_it_is_back() -> None:
    world = three()
    for broker_id in (1, 2):
        world.crash(broker_id)
    world.stop(3)
    world.start(3, clean=True)
    partition = world.partition()
    assert state(partition) == (3, (3,), (2,))
    assert partition.leader_recovery_state == 0
    assert partition.last_known_elr == ()
    assert "eligible leader replica" in world.last_told("leader-elected")["reason"]


def test_who_is_not_eligible_does_not_lead() -> None:
    world = three()
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    world.start(1)
    assert state(world.partition()) == (-1, (), (2, 3))


def test_an_unclean_stop_ends_eligibility_and_the_last_known_leader_recovers() -> None:
    world = three()
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    world.start(2)
    assert state(world.partition()) == (-1, (), (3,))
    world.start(3)
    partition = world.partition()
    assert state(partition) == (3, (3,), ())
    assert partition.leader_recovery_state == 1
    told = world.last_told("leader-elected")
    assert told["unclean"] is True
    assert "unclean recovery" in told["reason"]


def test_back_above_min_isr_the_eligible_are_forgotten() -> None:
    world = three()
    world.crash(1)
    world.crash(2)
    world.start(2)
    assert state(world.partition()) == (3, (3,), ())
    world.crash(2)
    world.start(1)
    world.alter_isr((3, 1))
    assert state(world.partition()) == (3, (3, 1), ())


def test_a_leaders_own_shrink_below_min_isr_keeps_the_others_eligible() -> None:
    world = three()
    world.alter_isr((1,))
    assert state(world.partition()) == (1, (1,), (2, 3))
    world.crash(1)
    partition = world.partition()
    assert partition.leader == 2
    assert partition.isr == (2,)
    assert partition.eligible_leader_replicas == (1, 3)
    assert partition.leader_recovery_state == 0


def test_min_isr_is_never_above_the_number_of_replicas() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]], min_insync_replicas="3")
    world.crash(1)
    assert state(world.partition()) == (2, (2,), (1,))


def test_unclean_election_only_where_it_is_enabled() -> None:
    for enabled in (False, True):
        world = three(unclean_leader_election_enable=str(enabled).lower())
        for broker_id in (1, 2, 3):
            world.crash(broker_id)
        world.start(1)
        partition = world.partition()
        if enabled:
            assert state(partition) == (1, (1,), ())
            assert partition.leader_recovery_state == 1
            assert world.last_told("leader-elected")["unclean"] is True
        else:
            assert partition.leader == -1


@pytest.mark.parametrize("resource", [(2, "t"), (4, ""), (4, "100")])
def test_enabling_unclean_election_acts_at_once(resource: tuple[int, str]) -> None:
    world = three()
    for broker_id in (1, 2, 3):
        world.crash(broker_id)
    world.start(1)
    if resource == (4, "100"):
        world.register(100)
    assert world.partition().leader == -1
    assert world.set_config(*resource, unclean_leader_election_enable="true").error_code == 0
    assert world.partition().leader == 1
    assert world.last_told("leader-elected")["reason"].startswith("unclean.leader.election.enable changed")


def test_without_the_feature_the_last_in_sync_stays_in_the_isr() -> None:
    world = World((1, 2), feature_levels={"metadata.version": 30})
    world.create("t", replicas=[[1, 2]], min_insync_replicas="2")
    world.crash(1)
    assert state(world.partition()) == (2, (2,), ())
    world.crash(2)
    assert state(world.partition()) == (-1, (2,), ())
    world.start(1)
    assert world.partition().leader == -1
    world.start(2)
    assert world.partition().leader == 2
    world.check()


def test_before_3_6_a_shrink_raises_the_leader_epoch() -> None:
    for level, epoch in ((11, 1), (12, 0)):
        world = World((1, 2), feature_levels={"metadata.version": level})
        world.create("t", replicas=[[1, 2]])
        world.alter_isr((1,))
        assert world.partition().leader_epoch == epoch
        world.check()
