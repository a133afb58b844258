"""Brokers with several log directories: one fails, and what is in the others is served on (KIP-112, KIP-858)."""

from __future__ import annotations

import pytest

from tidelog.ledger import compare
from tidelog.sim import mutants
from tidelog.sim.shape import draw
from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan

TOPIC, PARTITIONS = "events", range(6)
QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}


def two_directories_each(seed: int) -> SimulatedStage:
    """Two brokers, of which the first leads every partition; a record in each."""
    stage = SimulatedStage(seed, directories=2)
    stage.start(Plan((1, 2), (9,), QUICK))
    assert stage.create_topic(TOPIC, [[1, 2]] * len(PARTITIONS), {"min.insync.replicas": "1"}) == ""
    stage.add_producer("p", {"acks": "all"})
    write(stage, "before")
    return stage


def write(stage: SimulatedStage, word: str) -> None:
    """Have a record acknowledged in every partition."""
    for index in PARTITIONS:
        stage.send("p", TOPIC, index, f"{word} {index}")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 10_000), stage.leaders(TOPIC)


def in_second_directory(stage: SimulatedStage, node_id: int) -> set[int]:
    """The partitions that a broker has on its second disk."""
    replicas, disk = stage.cluster.process(node_id).node.replicas, stage.cluster.world.hosts[node_id].disks[1]
    return {index for index in PARTITIONS if replicas.directory_of(replicas.partitions[TOPIC, index]).storage is disk}


def isr(stage: SimulatedStage, index: int) -> set[int]:
    """Who is in sync, by the newest metadata."""
    topic = stage.image.topic(TOPIC)
    assert topic is not None
    return set(topic.partitions[index].isr)


def lost(stage: SimulatedStage) -> list[str]:
    """What was acknowledged and is in no leader's log."""
    views = [stage.partition(TOPIC, index) for index in PARTITIONS]
    values = [record.value for view in views for record in view.lane(view.leader).records]
    return [entry.value for entry in compare(stage.ledger("p"), values).lost]


@pytest.mark.parametrize("seed", range(3))
def test_a_directory_that_fails_takes_what_it_led_and_nothing_else(seed: int) -> None:
    stage = two_directories_each(seed)
    there = in_second_directory(stage, 1)
    assert there
    assert there != set(PARTITIONS)
    stage.cluster.world.hosts[1].disks[1].fail()
    write(stage, "while it fails")
    assert stage.is_serving(1)
    assert stage.leaders(TOPIC) == [2 if index in there else 1 for index in PARTITIONS]
    assert {index for index in PARTITIONS if isr(stage, index) == {2}} == there

    stage.kill(1)
    stage.cluster.world.hosts[1].disks[1].heal()
    stage.start_node(1)
    assert stage.wait_until(lambda: all(isr(stage, index) == {1, 2} for index in PARTITIONS), 20_000)
    write(stage, "when it is back")
    assert lost(stage) == []


@pytest.mark.parametrize("operation", ["read", "delete", ""])
def test_a_broker_starts_without_a_directory_that_fails(operation: str) -> None:
    """Not even its id may be readable: the controller hears of the others, and nothing is made anew in those."""
    stage = two_directories_each(2)
    there = in_second_directory(stage, 1)
    disk = stage.cluster.world.hosts[1].disks[1]
    stage.kill(1)
    disk.fail(operation)
    stage.start_node(1)
    assert stage.wait_until(lambda: all(isr(stage, index) == {1, 2} for index in set(PARTITIONS) - there), 20_000)
    write(stage, "without it")
    assert {index for index in PARTITIONS if isr(stage, index) == {2}} == there
    offline = [one for one in stage.cluster.world.told if one[2].kind == "log-directory-offline"]
    assert [(node_id, one.fields["directory"]) for _, node_id, one in offline] == [(1, disk.root)]

    stage.kill(1)
    disk.heal()
    stage.start_node(1)
    assert stage.wait_until(lambda: all(isr(stage, index) == {1, 2} for index in PARTITIONS), 20_000)
    assert in_second_directory(stage, 1) == there
    assert lost(stage) == []


def test_the_only_copy_waits_for_its_directory() -> None:
    """The node does not know which directory that is that it cannot read: it begins none of its replicas anew."""
    stage = SimulatedStage(3, directories=2)
    stage.start(Plan((1,), (9,), QUICK))
    assert stage.create_topic(TOPIC, [[1]] * len(PARTITIONS), {}) == ""
    stage.add_producer("p", {"acks": "all", "delivery.timeout.ms": "3000"})
    write(stage, "before")
    there = in_second_directory(stage, 1)
    disk = stage.cluster.world.hosts[1].disks[1]
    stage.kill(1)
    disk.fail()
    stage.start_node(1)
    write(stage, "without it")
    assert {index for index, leader in enumerate(stage.leaders(TOPIC)) if leader < 0} == there
    stage.kill(1)
    disk.heal()
    stage.start_node(1)
    assert stage.wait_until(lambda: set(stage.leaders(TOPIC)) == {1}, 20_000)
    assert lost(stage) == []


def test_a_disk_that_is_replaced_is_filled_from_the_others() -> None:
    stage = two_directories_each(4)
    stage.kill(1)
    assert stage.wait_until(lambda: set(stage.leaders(TOPIC)) == {2}, 10_000)
    stage.cluster.wipe_directory(1, 1)
    stage.start_node(1)
    assert stage.wait_until(lambda: all(isr(stage, index) == {1, 2} for index in PARTITIONS), 20_000)
    for index in PARTITIONS:
        assert stage.log_bytes(1, TOPIC, index) == stage.log_bytes(2, TOPIC, index) != b""


def test_one_seed_of_six_has_several() -> None:
    several = [one for one in range(300_000, 300_600) if draw(one).directories > 1]
    assert 70 <= len(several) <= 130


def test_a_broker_that_serves_on_from_a_failed_directory_is_found() -> None:
    hunt = mutants.hunt(mutants.ALL["failed-directory-serves"], range(300_000, 300_020))
    assert hunt.is_proven, hunt.complaint
    assert hunt.checker == "FailedDirectoriesAreLeft"
