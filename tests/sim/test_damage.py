"""A replica that finds rot in its log leaves the ISR and is copied again; what was committed stays whole somewhere."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.sim.test_throttle import reassign
from tidelog.replica.read_again import MOST_REMEMBERED, ReadAgain
from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan
from tidelog.wire.batch import BatchHeader, iterate_batches

MAGIC_AT = 16
FIRST_SEGMENT = "events-0/00000000000000000000.log"
"""In a batch: behind base offset, length and leader epoch."""
VALUES = [f"M{number}" for number in range(10)]


def started(replicas: list[int], seed: int = 1, **configs: str) -> SimulatedStage:
    """Ten committed records; a producer `p` with acks=all."""
    stage = SimulatedStage(seed)
    stage.start(Plan((1, 2, 3), (9,), {"log.flush.offset.checkpoint.interval.ms": "1000"}))
    named = {name.replace("_", "."): value for name, value in configs.items()}
    assert stage.create_topic("events", [replicas], named) == ""
    stage.add_producer("p", {"acks": "all"})
    for value in VALUES:
        stage.send("p", "events", 0, value)
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 60_000)
    stage.wait(1_000)
    watch_the_isr(stage)
    return stage


def watch_the_isr(stage: SimulatedStage) -> None:
    """After every step of every node: whoever is in the ISR and runs has all that its leader calls committed."""

    def look(_process: Any) -> None:
        topic = stage.image.topic("events")
        assert topic is not None
        state = topic.partitions[0]
        hosted = {
            node_id: process.node.replicas.partitions.get(("events", 0))
            for node_id in state.isr
            if (process := stage.cluster.world.hosts[node_id].process) is not None and process.alive
        }
        leader = hosted.get(state.leader)
        if leader is None or leader.leadership is None or leader.leader_epoch != state.leader_epoch:
            return
        for node_id, replica in hosted.items():
            if replica is not None:
                assert replica.log.log_end_offset >= leader.high_watermark, f"node {node_id} is in the ISR with less"

    stage.cluster.world.on_step = look


def rot(stage: SimulatedStage, node_id: int, offset: int, name: str = "00000000000000000000.log") -> None:
    """One bit of a record's value turns on a node's disk."""
    data = stage.cluster.world.hosts[node_id].disks[0].read_file(f"events-0/{name}")
    position = data.index(f"M{offset}".encode())
    stage.cluster.world.hosts[node_id].disks[0].flip_bit(f"events-0/{name}", position)


def told(stage: SimulatedStage, kind: str) -> list[Any]:
    return [one for one in stage.cluster.world.told if one[2].kind == kind]


def isr_of(stage: SimulatedStage) -> set[int]:
    topic = stage.image.topic("events")
    assert topic is not None
    return set(topic.partitions[0].isr)


def values(stage: SimulatedStage, node_id: int) -> list[str]:
    return [one.value for one in stage.partition("events", 0).lane(node_id).records]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_leader_with_rot_lets_another_lead_and_copies_again(seed: int) -> None:
    stage = started([1, 2], seed)
    rot(stage, 1, 4)
    reassign(stage, [1, 2, 3])  # node 3 copies from the beginning, and does not take what it cannot prove
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2, 3}, 30_000)
    assert stage.partition("events", 0).leader == 2
    assert {stage.log_bytes(node_id, "events", 0) for node_id in (1, 3)} == {stage.log_bytes(2, "events", 0)}
    assert values(stage, 2) == VALUES
    (damaged,) = told(stage, "log-damaged")
    assert damaged[1] == 1
    assert "node 3 refused it" in damaged[2].fields["reason"]
    assert [one[1] for one in told(stage, "damaged-replica-discarded")] == [1]
    stage.send("p", "events", 0, "after")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 10_000)
    assert [entry.outcome for entry in stage.ledger("p")] == ["acknowledged"] * 11


def test_a_leader_with_rot_that_only_consumers_read_lets_another_lead() -> None:
    """They can only ask again, which they did for ever although another replica had it whole (seed 203556)."""
    stage = started([1, 2])
    rot(stage, 1, 4)
    stage.add_consumer("c", "", "", False)
    assert [one.value for one in stage.consume("c", "events", 0).records] == VALUES
    assert stage.partition("events", 0).leader == 2
    (damaged,) = told(stage, "log-damaged")
    assert "a consumer reads it again" in damaged[2].fields["reason"]
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2}, 30_000)
    assert stage.log_bytes(1, "events", 0) == stage.log_bytes(2, "events", 0)


def test_what_several_consumers_read_is_looked_at_now_and_then_only() -> None:
    again = ReadAgain()
    assert [time for time in range(1, 70) if again.is_due(7)] == [2, 4, 8, 16, 32, 64]
    for offset in range(100, 100 + MOST_REMEMBERED):
        assert not again.is_due(offset)
    assert not again.is_due(7)  # forgotten


def test_the_only_copy_is_never_thrown_away() -> None:
    """It goes on serving what is whole, says so once, and is no more offline than it was."""
    stage = started([1])
    rot(stage, 1, 4)
    reassign(stage, [1, 2])
    stage.wait(20_000)
    (damaged,) = told(stage, "log-damaged")
    assert damaged[2].fields["then"].startswith("no other replica is in sync")
    assert 5 < len(told(stage, "replica-fetch-refused")) < 40, "it waits longer each time, up to a second"
    assert stage.partition("events", 0).leader == 1
    assert len(values(stage, 1)) == 10
    assert isr_of(stage) == {1}
    stage.send("p", "events", 0, "after")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 10_000)
    assert stage.ledger("p")[-1].outcome == "acknowledged"


@pytest.mark.parametrize("least", ["1", "2"])
def test_a_follower_with_rot_is_out_of_the_isr_until_it_has_everything_again(least: str) -> None:
    """Its leader remembers how far it was; that must not let it in while it is empty."""
    stage = started([1, 2], min_insync_replicas=least)
    follower = stage.cluster.process(2).node.replicas
    stage.hold(2, 1, "data")
    follower.on_damage(follower.partitions["events", 0], "found by a test")
    stage.wait(3_000)
    assert isr_of(stage) == {1}
    topic = stage.image.topic("events")
    assert topic is not None
    assert topic.partitions[0].eligible_leader_replicas == ()
    assert values(stage, 2) == []
    stage.release(2, 1, "data")
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2}, 30_000)
    assert values(stage, 2) == VALUES
    assert stage.log_bytes(1, "events", 0) == stage.log_bytes(2, "events", 0)


def after_a_power_loss(seed: int) -> tuple[SimulatedStage, BatchHeader] | None:
    """Node 2 is without power; with the last batch of its first segment, where the checkpoint still covers that one."""
    stage = started([1, 2, 3], seed=seed, segment_bytes=str(1 << 20))
    for _ in range(120):
        stage.send("p", "events", 0, "x" * 10_000)
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 60_000)
    stage.wait(3_000)
    stage.power_off(2)
    disk = stage.cluster.world.hosts[2].disks[0]
    last = list(iterate_batches(disk.read_file(FIRST_SEGMENT)))[-1]
    _, count, *rows = disk.read_file("recovery-point-offset-checkpoint").split() or (b"0", b"0")
    is_covered = int(count) > 0 and int(rows[-1]) > last.last_offset
    return (stage, last) if is_covered else None


def test_a_follower_that_finds_rot_when_it_starts_copies_again() -> None:
    stage, last = next(found for found in map(after_a_power_loss, range(1, 30)) if found is not None)
    disk = stage.cluster.world.hosts[2].disks[0]
    # After a loss of power a segment must at least end where the next begins.
    disk.flip_bit(FIRST_SEGMENT, disk.size(FIRST_SEGMENT) - last.size + MAGIC_AT)
    stage.wait(1_000)
    stage.start_node(2)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 3}, 30_000)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2, 3}, 30_000)
    assert [one[1] for one in told(stage, "log-damaged")] == [2]
    assert [one[1] for one in told(stage, "damaged-replica-discarded")] == [2]
    assert stage.log_bytes(2, "events", 0) == stage.log_bytes(1, "events", 0)


@pytest.mark.parametrize("returns_first", [1, 2])
def test_a_killed_replica_that_finds_rot_when_it_starts_does_not_lead_with_what_is_left(returns_first: int) -> None:
    """Seed 200181: its word that a kill loses nothing counted, and what it had was cut at the rot."""
    stage = started([1, 2], min_insync_replicas="2")
    rot(stage, 2, 4)
    stage.kill(2)
    assert stage.wait_until(lambda: isr_of(stage) == {1}, 30_000)
    stage.kill(1)
    assert stage.wait_until(lambda: stage.partition("events", 0).leader == -1, 30_000)
    for node_id in (returns_first, 3 - returns_first):
        stage.start_node(node_id)
        stage.wait(5_000)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2}, 30_000)
    assert values(stage, 1) == values(stage, 2) == VALUES
    assert [one[1] for one in told(stage, "damaged-replica-discarded")] == [2]


def test_the_only_copy_is_not_cut_however_often_its_node_starts() -> None:
    """Neither a kill nor a clean stop makes a damaged log a short one, and what was known of it stays known."""
    stage = started([1])
    rot(stage, 1, 4)
    before = stage.log_bytes(1, "events", 0)
    disk = stage.cluster.world.hosts[1].disks[0]
    stage.kill(1)
    disk.replace("recovery-point-offset-checkpoint", b"0\n1\nevents 0 3\n")
    for end in (stage.kill, stage.kill, stage.cluster.world.stop):
        stage.start_node(1)
        stage.wait(5_000)
        assert stage.log_bytes(1, "events", 0) == before
        if end is stage.kill:
            assert list(stage.cluster.process(1).node.replicas.damaged) == [("events", 0)]
            assert b"events 0 3\n" in disk.read_file("recovery-point-offset-checkpoint")
        end(1)
        assert stage.wait_until(lambda: not stage.cluster.process(1).alive, 20_000)


@pytest.mark.parametrize("is_asked", [False, True])
def test_where_only_a_damaged_replica_is_in_sync_another_may_lead_if_it_is_let(is_asked: bool) -> None:
    """Seed 200799: it counted as the leader, served nothing, and nobody could take its place."""
    stage = started([1, 2], unclean_leader_election_enable=str(not is_asked).lower())
    stage.kill(2)
    assert stage.wait_until(lambda: isr_of(stage) == {1}, 30_000)
    rot(stage, 1, 4)
    stage.kill(1)
    stage.start_node(1)
    stage.start_node(2)
    if is_asked:
        stage.wait(5_000)
        assert stage.partition("events", 0).leader == -1
        assert stage.elect("unclean", "events", [0]) == ""
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2}, 30_000)
    assert stage.partition("events", 0).leader == 2
    assert values(stage, 1) == values(stage, 2) == VALUES


def test_where_the_others_die_meanwhile_the_damaged_one_leads_again() -> None:
    """It gave up, and nobody took over: nothing was thrown away yet, and it has nearly everything."""
    stage = started([1, 2])
    leader = stage.cluster.process(1).node.replicas
    stage.hold(1, 9, "control")
    leader.on_damage(leader.partitions["events", 0], "found by a test")
    stage.wait(10)
    stage.kill(2)
    assert stage.wait_until(lambda: isr_of(stage) == {1}, 30_000)
    stage.release(1, 9, "control")
    assert stage.wait_until(lambda: stage.partition("events", 0).lane(1).state == "leader", 30_000)
    stage.wait(2_000)
    assert values(stage, 1) == VALUES
    stage.send("p", "events", 0, "after")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 20_000)


@pytest.mark.parametrize("is_found_before", [False, True])
def test_a_damaged_leader_that_alone_is_in_sync_lets_an_eligible_one_lead(is_found_before: bool) -> None:
    """What rotted nobody else has, so nobody could copy it, reach the start of the leader's epoch and be in sync."""
    stage = started([1, 2, 3], min_insync_replicas="2")
    for other in (2, 3):
        stage.hold(1, other, "data")
    stage.send("p", "events", 0, "M10")
    stage.wait(100)
    stage.kill(2)
    stage.kill(3)
    assert stage.wait_until(lambda: isr_of(stage) == {1}, 30_000)
    stage.kill(1)
    assert stage.wait_until(lambda: stage.partition("events", 0).leader == -1, 30_000)
    stage.start_node(1)
    assert stage.wait_until(lambda: stage.partition("events", 0).lane(1).state == "leader", 30_000)
    rot(stage, 1, 10)
    stage.heal()
    if is_found_before:
        stage.wait(1_000)
        leader = stage.cluster.process(1).node.replicas
        leader.on_damage(leader.partitions["events", 0], "found by a test")
        stage.wait(5_000)
        assert stage.partition("events", 0).lane(1).state == "leader", "nobody else is there"
    stage.start_node(2)
    stage.start_node(3)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2, 3} and not stage.unsettled("p"), 60_000)
    assert stage.ledger("p")[-1].outcome == "acknowledged"
    assert [values(stage, node_id) for node_id in (1, 2, 3)] == [[*VALUES, "M10"]] * 3
    assert [one[1] for one in told(stage, "damaged-replica-discarded")] == [1]


def test_an_eligible_one_that_can_catch_up_is_waited_for() -> None:
    """What was written with acks=1 meanwhile would be lost if it led at once."""
    stage = started([1, 2, 3], min_insync_replicas="2")
    stage.kill(2)
    stage.kill(3)
    assert stage.wait_until(lambda: isr_of(stage) == {1}, 30_000)
    stage.add_producer("q", {"acks": "1"})
    stage.send("q", "events", 0, "alone")
    assert stage.wait_until(lambda: stage.unsettled("q") == 0, 10_000)
    rot(stage, 1, 4)
    leader = stage.cluster.process(1).node.replicas
    leader.on_damage(leader.partitions["events", 0], "found by a test")
    stage.start_node(2)
    stage.start_node(3)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2, 3}, 60_000)
    assert [one[1] for one in told(stage, "damaged-replica-discarded")] == [1]
    assert [values(stage, node_id) for node_id in (1, 2, 3)] == [[*VALUES, "alone"]] * 3


@pytest.mark.parametrize("seed", [69, *range(300, 312)])
def test_rot_among_kills_and_held_links_loses_nothing(seed: int) -> None:
    """One replica at a time rots, others come and go, links are held at bad moments (seed 69 once never came back)."""
    chance = Random(seed)
    stage = SimulatedStage(seed)
    stage.start(Plan((1, 2, 3), (9,), {"replica.lag.time.max.ms": "3000"}))
    configs = {"min.insync.replicas": chance.choice(["1", "2"])}
    assert stage.create_topic("events", [[1, 2, 3]], configs) == ""
    stage.add_producer("p", {"acks": "all"})
    watch_the_isr(stage)
    for step in range(25):
        for number in range(chance.randrange(4)):
            stage.send("p", "events", 0, f"{step}-{number}")
        deed, node_id = chance.choice(["rot", "rot", "kill", "start", "hold", "heal", "wait"]), chance.choice([1, 2, 3])
        alive = [one for one in (1, 2, 3) if one in stage.cluster.living()]
        if deed == "rot" and node_id in alive and isr_of(stage) == {1, 2, 3}:
            replicas = stage.cluster.process(node_id).node.replicas
            if ("events", 0) in replicas.partitions:
                replicas.on_damage(replicas.partitions["events", 0], "found by a test")
        elif deed == "kill" and len(alive) == 3:
            stage.kill(node_id)
        elif deed == "start" and node_id not in alive:
            stage.start_node(node_id)
        elif deed == "hold":
            others = [one for one in (1, 2, 3, 9) if one != node_id]
            stage.hold(node_id, chance.choice(others), chance.choice(["data", "control"]))
        elif deed == "heal":
            stage.heal()
        stage.wait(chance.choice([1, 5, 20, 100, 500, 2000]))
    stage.heal()
    for node_id in (1, 2, 3):
        if node_id not in stage.cluster.living():
            stage.start_node(node_id)
    assert stage.wait_until(lambda: isr_of(stage) == {1, 2, 3} and not stage.unsettled("p"), 90_000)
    stage.wait(2_000)
    stored = values(stage, stage.partition("events", 0).leader)
    assert [one.value for one in stage.ledger("p") if one.outcome == "acknowledged" and one.value not in stored] == []
    assert len({stage.log_bytes(node_id, "events", 0) for node_id in (1, 2, 3)}) == 1
