"""A kill loses nothing, and a broker whose machine stayed up may say so: what it had counts again when it is back."""

from __future__ import annotations

import json

import pytest

from tidelog.effects import Flush
from tidelog.ledger import compare
from tidelog.replica.directory import CLEAN_SHUTDOWN, META_PROPERTIES, LogDirectory, MetaProperties
from tidelog.replica.former_life import NONE, REGISTERED, FormerLife
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}


def two_replicas(seed: int) -> SimulatedStage:
    """Two brokers with ten acknowledged records in both; both are needed for more."""
    stage = SimulatedStage(seed)
    stage.start(Plan((1, 2), (9,), QUICK))
    assert stage.create_topic("events", [[1, 2]], {"min.insync.replicas": "2"}) == ""
    stage.add_producer("p", {"acks": "all"})
    for number in range(10):
        stage.send("p", "events", 0, f"M{number}")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 5000)
    return stage


def lost(stage: SimulatedStage) -> list[str]:
    """What was acknowledged and is not in the leader's log."""
    view = stage.partition("events", 0)
    values = [record.value for record in view.lane(view.leader).records]
    return [entry.value for entry in compare(stage.ledger("p"), values).lost]


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_replica_with_all_records_is_not_cut_to_one_that_lost_power(seed: int) -> None:
    """Seed 2087 of an early drawing: the killed one was taken for empty-handed, and the one that was so led again."""
    stage = two_replicas(seed)
    stage.kill(2)
    assert stage.wait_until(lambda: stage.partition("events", 0).isr == (1,), 10_000)
    stage.power_off(1)
    assert stage.wait_until(lambda: stage.partition("events", 0).leader == -1, 10_000)
    stage.start_node(2)
    stage.wait(1_000)
    stage.start_node(1)
    assert stage.wait_until(lambda: set(stage.partition("events", 0).isr) == {1, 2}, 20_000)
    assert lost(stage) == []


def test_a_replica_that_lost_power_does_not_vouch_for_itself() -> None:
    stage = two_replicas(1)
    stage.power_off(2)
    assert stage.wait_until(lambda: stage.partition("events", 0).isr == (1,), 10_000)
    assert stage.partition("events", 0).eligible == (2,)
    stage.kill(1)
    assert stage.wait_until(lambda: stage.partition("events", 0).leader == -1, 10_000)
    stage.start_node(2)
    stage.wait(3_000)
    assert stage.partition("events", 0).leader == -1, "node 2 leads although it may have lost what it had"
    stage.start_node(1)
    assert stage.wait_until(lambda: set(stage.partition("events", 0).isr) == {1, 2}, 20_000)
    assert lost(stage) == []


def test_a_broker_that_stops_before_it_could_register_keeps_its_word() -> None:
    """Seed 372: cut off, stopped, started and stopped again, it came back as one that may have lost everything."""
    stage = two_replicas(1)
    stage.power_off(2)
    assert stage.wait_until(lambda: stage.partition("events", 0).isr == (1,), 10_000)
    world = stage.cluster.world
    for away in range(2):
        world.network.cut(1, 9)
        world.network.cut(9, 1)
        if away:
            world.start(1)
            stage.wait(1_000)
        world.stop(1)
        assert stage.wait_until(lambda: not stage.cluster.process(1).alive, 20_000)
    world.hosts[1].boots += 1  # only what the clean stop left behind counts
    world.network.heal()
    stage.start_node(1)
    stage.start_node(2)
    assert stage.wait_until(lambda: set(stage.partition("events", 0).isr) == {1, 2}, 20_000)
    assert stage.partition("events", 0).leader == 1
    assert lost(stage) == []
    told = [one.fields["reason"] for one in stage.take_told() if one.kind == "broker-registered"]
    assert "with all it had" in told


@pytest.mark.parametrize("seed", [0, *range(3, 12)])
def test_what_a_power_loss_tore_is_no_damage_after_a_kill_in_the_middle_of_the_start(seed: int) -> None:
    """The life that was killed had registered, but had not come to its logs: their torn ends are still there."""
    stage = SimulatedStage(seed)
    stage.start(Plan((1,), (9,), QUICK))
    assert stage.create_topic("events", [[1]], {}) == ""
    stage.add_producer("p", {"acks": "all"})
    for number in range(10):
        stage.send("p", "events", 0, f"M{number}")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 5000)
    stage.power_off(1)
    world = stage.cluster.world
    world.start(1)
    node = stage.cluster.process(1).node
    assert world.run_until(lambda: node.lifecycle.broker_epoch >= 0)
    assert not node.replicas.is_loaded
    stage.kill(1)
    world.start(1)
    replicas = stage.cluster.process(1).node.replicas
    assert world.run_until(lambda: replicas.is_loaded, 20_000)
    assert not replicas.damaged


def test_a_stop_before_the_logs_are_opened_says_of_them_what_was_true_before() -> None:
    """They are not called clean if they were not, and what the checkpoints know is not forgotten."""
    stage = two_replicas(1)
    world = stage.cluster.world
    disk = world.hosts[1].disks[0]
    stage.power_off(1)
    known = b"0\n1\nevents 0 10\n"
    disk.replace("replication-offset-checkpoint", known)
    for other in (2, 9):
        world.network.cut(1, other)
        world.network.cut(other, 1)
    world.start(1)
    stage.wait(1_000)
    assert not stage.cluster.process(1).node.replicas.is_loaded
    world.stop(1)
    assert stage.wait_until(lambda: not stage.cluster.process(1).alive, 20_000)
    assert not disk.exists(CLEAN_SHUTDOWN)
    assert disk.read_file("replication-offset-checkpoint") == known


@pytest.mark.parametrize("end", ["kill", "stop", "stop and reboot"])
def test_a_registration_that_waited_for_a_life_that_is_over_takes_nobody_s_word_back(end: str) -> None:
    """Seed 300620: it was answered to nobody, and the next life could only name the epoch before it."""
    stage = two_replicas(1)
    world = stage.cluster.world
    stage.kill(2)
    assert stage.wait_until(lambda: stage.partition("events", 0).isr == (1,), 10_000)
    told_before = len(world.told)
    if end == "stop and reboot":
        world.stop(1)
        assert stage.wait_until(lambda: not stage.cluster.process(1).alive, 20_000)
        stage.pause(9)
    else:
        stage.pause(9)
        stage.kill(1)
    world.start(1)
    stage.wait(300)
    if end == "kill":
        stage.kill(1)
    else:
        world.stop(1)
        stage.wait(300)
    assert not stage.cluster.process(1).alive
    if end == "stop and reboot":
        stage.power_off(1)
    world.start(1)
    stage.wait(300)
    stage.resume(9)
    assert stage.wait_until(lambda: stage.cluster.is_running(1), 20_000)
    told = [one.fields["reason"] for _, _, one in world.told[told_before:] if one.kind == "broker-registered"]
    assert told == ["with all it had"], "the second is the same registration, which is no news"
    assert stage.wait_until(lambda: stage.partition("events", 0).leader == 1, 20_000)


@pytest.mark.parametrize("seed", range(8))
def test_a_broker_that_closes_its_logs_takes_nothing_more(seed: int) -> None:
    """Without a controller it stops at once, in sync: what it copied then was acknowledged, but not flushed."""
    stage = two_replicas(seed)
    world = stage.cluster.world
    stage.kill(9)
    world.hosts[2].disks[0].delay_ms = 300
    world.stop(2)
    stage.wait(100)
    for number in range(10, 15):
        stage.send("p", "events", 0, f"M{number}")
    assert stage.wait_until(lambda: not stage.cluster.process(2).alive, 20_000)
    stage.power_off(2)
    stage.kill(1)
    stage.start_node(9)
    world.hosts[2].disks[0].delay_ms = 0
    stage.start_node(2)
    stage.wait(6_000)
    assert stage.partition("events", 0).leader == 2
    stage.start_node(1)
    assert stage.wait_until(lambda: set(stage.partition("events", 0).isr) == {1, 2}, 20_000)
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 20_000)
    assert lost(stage) == []


# --- the mark itself ---


def directories(count: int = 1) -> list[LogDirectory]:
    """Log directories of one node, as formatted."""
    made = []
    for number in range(count):
        disk = SimulatedDisk(f"disk-{number}")
        meta = MetaProperties("cluster", 1, bytes([number + 1]) * 16)
        assert disk.apply_flush(Flush(0, disk, replacements=[(META_PROPERTIES, meta.to_bytes())])) is None
        made.append(LogDirectory(disk))
    return made


def registered(
    places: list[LogDirectory], epoch: int, boot_id: str | None = "boot 1", *, logs_opened: bool = True
) -> None:
    life = FormerLife(places, boot_id)
    for one in places:
        life.note(one, epoch, logs_opened=logs_opened)


def test_the_epoch_is_named_in_the_same_boot_only() -> None:
    places = directories(2)
    assert FormerLife(places, "boot 1").broker_epoch == NONE
    registered(places, 7)
    assert FormerLife(places, "boot 1").broker_epoch == 7
    assert FormerLife(places, "boot 2").broker_epoch == NONE
    assert FormerLife(places, None).broker_epoch == NONE


def test_nothing_is_lost_by_a_life_that_had_opened_its_logs_or_had_them_from_one_that_had() -> None:
    places = directories(2)
    registered(places, 7, logs_opened=False)
    assert not FormerLife(places, "boot 1").lost_nothing
    registered(places, 8)
    assert FormerLife(places, "boot 1").lost_nothing
    assert not FormerLife(places, "boot 2").lost_nothing
    registered(places, 9, logs_opened=False)
    assert FormerLife(places, "boot 1").lost_nothing
    registered(places[1:], 9, "boot 2", logs_opened=False)
    assert not FormerLife(places, "boot 1").lost_nothing


def test_who_was_not_answered_registers_as_the_same() -> None:
    places = directories(2)
    registered(places, 7)
    life = FormerLife(places, "boot 1")
    assert life.unanswered_incarnation_id is None
    for one in places:
        life.note_registering(one, b"i" * 16)
    after = FormerLife(places, "boot 1")
    assert (after.broker_epoch, after.lost_nothing, after.unanswered_incarnation_id) == (7, True, b"i" * 16)
    assert FormerLife(places, "boot 2").unanswered_incarnation_id is None
    assert FormerLife([*places, *directories(3)[2:]], "boot 1").unanswered_incarnation_id is None
    registered(places, 8)
    assert FormerLife(places, "boot 1").unanswered_incarnation_id is None


def test_where_the_boot_is_unknown_nothing_is_noted() -> None:
    places = directories()
    registered(places, 7, None)
    assert not places[0].storage.exists(REGISTERED)


def test_all_directories_must_name_the_same_epoch() -> None:
    places = directories(2)
    registered(places, 7)
    registered(places[:1], 9)
    assert FormerLife(places, "boot 1").broker_epoch == NONE
    new = directories(3)[2]
    assert FormerLife([places[0], new], "boot 1").broker_epoch == NONE


def test_a_clean_stop_of_one_directory_does_not_speak_for_the_other() -> None:
    """One was offline at the stop: it has no mark, and what it holds is old."""
    places = directories(2)
    path, content = places[0].mark_clean_shutdown(7)
    places[0].storage.replace(path, content)
    places = [LogDirectory(one.storage) for one in places]
    assert FormerLife(places[:1], None).broker_epoch == 7
    assert FormerLife(places, None).broker_epoch == NONE


def test_a_failed_disk_takes_the_word_back_for_all() -> None:
    places = directories(2)
    registered(places, 7)
    broken = places[0].storage
    assert isinstance(broken, SimulatedDisk)
    broken.fail()
    FormerLife(places, "boot 1").forget()
    broken.heal()
    assert FormerLife(places, "boot 1").broker_epoch == NONE


def test_a_life_in_which_a_disk_failed_leaves_no_mark_any_more() -> None:
    """Seed 220777: a disk failed while the logs were opened, and when all were the mark was written once more where it
    could be, beside the one that the failed disk had not deleted."""
    places = directories(2)
    life = FormerLife(places, "boot 1")
    for one in places:
        life.note(one, 7, logs_opened=False)
    broken = places[1].storage
    assert isinstance(broken, SimulatedDisk)
    broken.fail()
    places[1].fail("it is broken")
    life.forget()
    for one in places:
        life.note(one, 7, logs_opened=True)
    broken.heal()
    assert FormerLife([LogDirectory(one.storage) for one in places], "boot 1").broker_epoch == NONE


def test_a_clean_stop_of_the_others_does_not_speak_for_a_disk_that_failed_and_kept_its_mark() -> None:
    """Seed 400017, with several directories: the mark of the former life could not be deleted where the disk failed,
    and the clean stop put one of the same epoch beside it."""
    places = directories(2)
    registered(places, 7)
    broken = places[1].storage
    assert isinstance(broken, SimulatedDisk)
    broken.fail()
    FormerLife(places, "boot 1").forget()
    path, content = places[0].mark_clean_shutdown(7)
    places[0].storage.replace(path, content)
    broken.heal()
    places = [LogDirectory(one.storage) for one in places]
    assert FormerLife(places, "boot 1").broker_epoch == NONE
    path, content = places[1].mark_clean_shutdown(7)
    broken.replace(path, content)
    places = [LogDirectory(one.storage) for one in places]
    assert FormerLife(places, "boot 1").broker_epoch == 7


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"brokerEpoch":7}', b"7"])
def test_a_damaged_mark_says_nothing(content: bytes) -> None:
    places = directories()
    places[0].storage.replace(REGISTERED, content)
    assert FormerLife(places, "boot 1").broker_epoch == NONE


def test_a_mark_of_another_directory_says_nothing() -> None:
    """Files that were copied into a directory that was formatted anew."""
    first, second = directories(2)
    registered([first], 7)
    second.storage.replace(REGISTERED, first.storage.read_file(REGISTERED))
    assert FormerLife([second], "boot 1").broker_epoch == NONE
    assert json.loads(first.storage.read_file(REGISTERED))["brokerEpoch"] == 7
