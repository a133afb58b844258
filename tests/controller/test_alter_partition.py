"""AlterPartition: the leader proposes, the controller decides, and every stale or ineligible proposal has its code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.world import World
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages import alter_partition as ap


def ready() -> World:
    world = World((1, 2, 3, 4))
    world.create("t", replicas=[[1, 2, 3]])
    world.alter_isr((1, 2))
    world.crash(2)
    world.start(2)
    return world


@pytest.mark.parametrize(
    ("isr", "change", "code"),
    [
        ((1, 2), {}, ErrorCode.NONE),
        ((1, 2, 3), {"version": 2}, ErrorCode.NONE),
        ((1,), {}, ErrorCode.NONE),
        ((1, 2), {"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ((1, 2), {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 2), {"broker_id": 3}, ErrorCode.INVALID_REQUEST),
        ((1, 4), {}, ErrorCode.INVALID_REQUEST),
        ((2, 3), {}, ErrorCode.INVALID_REQUEST),
        ((1, 2, 2), {}, ErrorCode.INVALID_REQUEST),
        ((), {}, ErrorCode.INVALID_REQUEST),
        ((1, 2), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ((1, 2), {"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"epochs": {2: -1}}, ErrorCode.NONE),
    ],
)
def test_proposals(isr: tuple[int, ...], change: dict[str, Any], code: ErrorCode) -> None:
    world = ready()
    before = world.partition()
    answer = world.alter_isr(isr, **change)
    assert ErrorCode(answer.error_code) is code
    after = world.partition()
    if code is ErrorCode.NONE:
        assert after.isr == isr
        assert (answer.isr, answer.partition_epoch) == (list(isr), after.partition_epoch)
        assert (answer.leader_id, answer.leader_epoch) == (1, before.leader_epoch)
    else:
        assert after == before
    world.check()


def test_a_fenced_replica_is_not_let_in() -> None:
    world = ready()
    world.crash(3)
    assert world.alter_isr((1, 3)).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_the_same_isr_again_changes_nothing() -> None:
    world = ready()
    before = len(world.log)
    answer = world.alter_isr(world.partition().isr)
    assert (answer.error_code, answer.partition_epoch) == (0, world.partition().partition_epoch)
    assert len(world.log) == before


def test_unknown_topics_and_partitions() -> None:
    world = ready()
    epoch = world.image.brokers[1].epoch
    for topic_id, index, code in (
        (b"?" * 16, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (world.topic().topic_id, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        data = ap.AlterPartitionRequestPartitionData(partition_index=index)
        topic = ap.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[data])
        request = ap.AlterPartitionRequest(broker_id=1, broker_epoch=epoch, topics=[topic])
        answer = world.ask(ApiKey.ALTER_PARTITION, request, 3)
        assert answer.topics[0].partitions[0].error_code == code


def test_a_stale_broker_is_refused_as_a_whole() -> None:
    world = ready()
    request = ap.AlterPartitionRequest(broker_id=1, broker_epoch=3)
    assert world.ask(ApiKey.ALTER_PARTITION, request, 3).error_code == ErrorCode.STALE_BROKER_EPOCH
