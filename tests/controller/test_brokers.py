"""Brokers register, live, fall silent, stop and come back; their epochs and directories decide what they count for."""

from __future__ import annotations

import pytest

from tests.controller.world import World, directory, features, incarnation
from tidelog.controller.entities import UNASSIGNED_DIRECTORY
from tidelog.controller.records import RegisterBrokerRecord
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.wire.messages.controller_registration import ControllerRegistrationRequest
from tidelog.wire.messages.unregister_broker import UnregisterBrokerRequest


def test_the_epoch_is_the_offset_of_the_registration() -> None:
    world = World((1, 2))
    world.create("t", 3, 2)
    for broker_id in (3, 1):
        if broker_id == 1:
            world.crash(1)
        epoch = world.register(broker_id).broker_epoch
        record = world.log[epoch][0]
        assert isinstance(record, RegisterBrokerRecord)
        assert (record.broker_id, record.broker_epoch) == (broker_id, epoch)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(5), directory(5)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [each for each in features() if each.name != "group.version"]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({}, ErrorCode.NONE),
    ],
)
def test_who_is_let_in(change: dict[str, object], code: ErrorCode) -> None:
    world = World((1,))
    answer = world.register(5, **change)
    assert ErrorCode(answer.error_code) is code
    assert (5 in world.image.brokers) == (code is ErrorCode.NONE)


def test_an_id_in_use_is_not_given_away() -> None:
    world = World((1,))
    assert world.register(1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.pass_ms(world.config.broker_session_timeout_ms + 1)
    assert world.register(1).error_code == ErrorCode.NONE


def test_the_same_incarnation_may_register_again_and_keeps_its_epoch() -> None:
    world = World((1,))
    world.create("t")
    epoch = world.image.brokers[1].epoch
    answer = world.ask(ApiKey.BROKER_REGISTRATION, world.registration(1), 4)
    assert answer.broker_epoch == epoch
    assert not world.image.brokers[1].fenced
    assert world.partition().leader == 1


def test_a_broker_serves_when_it_has_read_its_own_registration() -> None:
    world = World()
    epoch = world.register(1).broker_epoch
    answer = world.beat(1, current_metadata_offset=epoch - 1)
    assert (answer.is_caught_up, answer.is_fenced) == (False, True)
    answer = world.beat(1, current_metadata_offset=epoch, want_fence=True)
    assert (answer.is_caught_up, answer.is_fenced) == (True, True)
    answer = world.beat(1, current_metadata_offset=epoch)
    assert not answer.is_fenced
    assert world.kinds()[-1] == "broker-unfenced"
    assert world.beat(1, want_fence=True).is_fenced
    assert world.image.brokers[1].fenced


def test_an_old_life_is_told_so() -> None:
    world = World((1,))
    epoch = world.image.brokers[1].epoch
    assert world.beat(1, broker_epoch=epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert world.ask(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(broker_id=9), 1).error_code == (
        ErrorCode.STALE_BROKER_EPOCH
    )


def test_silence_is_fenced_after_the_session_and_moves_leaderships() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    world.pass_ms(8_000)
    world.beat_all(2, 3)
    assert world.partition().leader == 1
    world.pass_ms(1_000)
    partition = world.partition()
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, (2, 3))
    assert world.last_told("broker-fenced") == {
        "broker": 1,
        "reason": "its session timed out",
        "epoch": world.image.brokers[1].epoch,
    }
    assert world.last_told("leader-elected")["reason"] == "broker 1 fenced: its session timed out: in-sync replica"
    world.check()


def test_a_heartbeat_keeps_the_session() -> None:
    world = World((1,))
    for _ in range(20):
        world.pass_ms(5_000)
        world.beat(1)
    assert world.image.brokers[1].active


def sleep_through(world: World, milliseconds: int) -> None:
    """The controller's process does not run for a while: all timers come due at once when it wakes."""
    world.outbox.now_ms += milliseconds
    world.outbox.run_due_timers()
    world.commit()


def test_a_controller_that_was_asleep_listens_before_it_fences() -> None:
    """Heartbeats that came meanwhile are read only after the timers ran: live brokers must not lose what they lead."""
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    world.pass_ms(1_000)
    sleep_through(world, world.config.broker_session_timeout_ms)
    assert all(broker.active for broker in world.image.brokers.values())
    world.beat_all(1, 2)
    world.pass_ms(world.config.broker_session_timeout_ms - 1)
    assert world.image.brokers[1].active
    assert world.image.brokers[3].fenced, "who stays silent is fenced a little later"
    assert world.partition().leader == 1


def test_a_controller_that_falls_asleep_again_and_again_still_fences_the_dead() -> None:
    world = World((1, 2))
    for _ in range(3):
        sleep_through(world, world.config.broker_session_timeout_ms)
        world.beat(2)
    assert world.image.brokers[1].fenced
    assert world.image.brokers[2].active


def test_a_controlled_shutdown_waits_until_the_others_have_read_of_it() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2], [1, 3], [2, 3]])
    world.beat_all(2, 3)
    read = len(world.log) - 1
    answer = world.beat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (False, False)
    assert world.image.brokers[1].in_controlled_shutdown
    assert [partition.leader for partition in world.topic().partitions.values()] == [2, 3, 2]
    assert world.partition().isr == (2,)
    assert not world.beat(1, want_shut_down=True).should_shut_down
    world.beat(2)
    world.beat(3, current_metadata_offset=read)
    assert not world.beat(1, want_shut_down=True).should_shut_down
    world.beat(3)
    answer = world.beat(1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert world.image.brokers[1].fenced
    world.check()


def test_a_broker_that_leads_nothing_or_is_alone_stops_at_once() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]])
    assert world.beat(2, want_shut_down=True).should_shut_down
    assert world.beat(1, want_shut_down=True).should_shut_down
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (-1, (), (1,))


def test_who_was_let_stop_does_not_come_back_in_the_same_life() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]])
    world.stop(1)
    assert world.beat(1).is_fenced
    world.pass_ms(world.config.broker_session_timeout_ms)
    world.start(1, clean=True)
    assert world.image.brokers[1].active


def test_a_stopping_broker_is_not_taken_back_into_an_isr() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    world.create("u", replicas=[[3, 1]])
    world.beat(3, want_shut_down=True)
    assert world.alter_isr((1, 2, 3)).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_clean_restart_leads_again_without_loss() -> None:
    world = World((1,))
    world.create("t")
    world.stop(1)
    world.start(1, clean=True)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2)
    assert partition.leader_recovery_state == 0
    assert world.last_told("leader-elected")["unclean"] is False


def test_a_crashed_only_replica_leads_again_and_it_is_reported_as_unclean() -> None:
    world = World((1,))
    world.create("t")
    world.crash(1)
    assert world.partition().last_known_elr == (1,)
    world.start(1)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.last_known_elr) == (1, (1,), ())
    assert partition.leader_recovery_state == 1
    told = world.last_told("leader-elected")
    assert told["unclean"] is True
    assert "last known leader" in told["reason"]
    assert world.alter_isr((1,)).error_code == ErrorCode.NONE
    assert world.partition().leader_recovery_state == 0


def test_a_wiped_disk_never_counts_as_having_what_it_had() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1]])
    world.crash(1)
    world.directories[1] = [directory(1, 9)]
    world.start(1)
    partition = world.partition()
    assert (partition.leader, partition.isr) == (-1, ())
    world.assign_directories(1, {0: directory(1, 9)})
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (), ())
    world.pass_ms(1)
    world.stop(1)
    world.start(1, clean=True)
    assert world.partition().leader == -1


def test_a_wiped_disk_that_nobody_knew_by_its_id_never_counts_either() -> None:
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.create("t", replicas=[[1]])
    assert world.partition().directory_of(1) == UNASSIGNED_DIRECTORY
    world.crash(1)
    world.directories[1] = [directory(1, 8), directory(1, 9)]
    world.start(1)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (), ())


def test_a_directory_that_was_only_away_has_the_last_known_leader_when_it_is_back() -> None:
    """A broker may start while one of its disks fails, and again when it works."""
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.create("t", replicas=[[1]])
    world.assign_directories(1, {0: directory(1, 2)})
    world.crash(1)
    world.directories[1] = [directory(1, 1)]
    world.start(1)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (), (1,))
    world.crash(1)
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    assert world.partition().leader == 1
    assert "last known leader" in world.last_told("leader-elected")["reason"]


def test_a_disk_changed_during_a_clean_stop_leaves_the_elr() -> None:
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.create("t", 2, 1)
    world.assign_directories(1, {0: directory(1, 1), 1: directory(1, 2)})
    world.stop(1)
    assert world.partition("t", 0).eligible_leader_replicas == (1,)
    world.directories[1] = [directory(1, 1), directory(1, 3)]
    world.start(1, clean=True)
    assert world.partition("t", 0).leader == 1
    assert world.partition("t", 1).leader == -1
    assert world.partition("t", 1).eligible_leader_replicas == ()


def test_a_directory_that_fails_gives_up_its_leaderships_only() -> None:
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.start(2)
    world.create("t", replicas=[[1, 2], [1, 2]])
    world.assign_directories(1, {0: directory(1, 1), 1: directory(1, 2)})
    world.beat(1, offline_log_dirs=[directory(1, 2)])
    assert world.image.brokers[1].log_dirs == (directory(1, 1),)
    assert [each.leader for each in world.topic().partitions.values()] == [1, 2]
    assert world.partition("t", 1).isr == (2,)
    assert world.kinds()[-1] != "broker-fenced"
    answer = world.beat(1, offline_log_dirs=[directory(1, 1)])
    assert answer.is_fenced
    assert world.partition("t", 0).leader == 2
    world.check()


def test_a_directory_that_fails_before_its_broker_serves_leads_nothing() -> None:
    """The heartbeat that puts the broker into service is the one that tells of the directory."""
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.start(2)
    world.create("t", replicas=[[1], [1]])
    world.assign_directories(1, {0: directory(1, 1), 1: directory(1, 2)})
    world.crash(1)
    world.register(1, clean=True)
    assert not world.beat(1, offline_log_dirs=[directory(1, 2)]).is_fenced
    assert [each.leader for each in world.topic().partitions.values()] == [1, -1]
    assert world.partition("t", 1).eligible_leader_replicas == (1,)
    world.check()


def test_unregistering_a_broker_takes_it_out_of_everything_but_the_replica_lists() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]])
    answer = world.ask(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))
    assert answer.error_code == ErrorCode.NONE
    assert (world.partition().leader, world.partition().isr, world.partition().replicas) == (2, (2,), (1, 2))
    answer = world.ask(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=1))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    world.check()


def test_a_controller_registers() -> None:
    world = World()
    request = ControllerRegistrationRequest(controller_id=7, incarnation_id=incarnation(7, 1))
    assert world.ask(ApiKey.CONTROLLER_REGISTRATION, request).error_code == ErrorCode.NONE
    assert world.image.controllers[7].incarnation_id == incarnation(7, 1)
    old = World(feature_levels={"metadata.version": 14})
    assert old.ask(ApiKey.CONTROLLER_REGISTRATION, request).error_code == ErrorCode.UNSUPPORTED_VERSION
