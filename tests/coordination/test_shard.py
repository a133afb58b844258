"""A coordinator's state survives: it is loaded where its partition is led, and answers wait until they are safe."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.support import OneNode
from tidelog.coordination.coordinator import Coordinator, java_string_hash, partition_for
from tidelog.coordination.shard import ShardStatus
from tidelog.errors import ErrorCode, KafkaError

TOPIC = "__notes"


class Notes:
    """The simplest state: the last value of each key."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.values: dict[bytes, bytes] = {}
        self.status: list[str] = []

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int, batch: Any) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def replay_end_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        raise AssertionError("nothing here is transactional")

    def loaded(self) -> None:
        self.status.append("loaded")

    def closed(self) -> None:
        self.status.append("closed")


def attach(node: OneNode) -> Coordinator[Notes]:
    core = node.process(1).node
    coordinator = Coordinator(TOPIC, core.replicas, Notes)
    core.broker.coordinators[TOPIC] = coordinator
    for (topic, _), partition in core.replicas.partitions.items():
        if topic == TOPIC:
            coordinator.role_changed(partition)
    return coordinator


@pytest.fixture
def node() -> OneNode:
    node = OneNode(replication_events_enable="false")
    attach(node)
    node.create(TOPIC, 2, {"cleanup.policy": "compact"})
    return node


def run(node: OneNode) -> None:
    """Let what was put into the outbox between steps happen."""
    node.produce({0: node.batch(b"tick")})


def test_a_shard_is_made_with_its_partition(node: OneNode) -> None:
    coordinator = node.process(1).node.broker.coordinators[TOPIC]
    assert {index: shard.status for index, shard in coordinator.shards.items()} == {
        0: ShardStatus.ACTIVE,
        1: ShardStatus.ACTIVE,
    }


def test_what_was_written_is_there_after_a_kill(node: OneNode) -> None:
    coordinator = node.process(1).node.broker.coordinators[TOPIC]
    answers: list[ErrorCode] = []
    shard = coordinator.shards[0]
    shard.write([(b"a", b"1"), (b"b", b"2")], answers.append)
    shard.write([(b"a", None)], answers.append)
    run(node)
    assert answers == [ErrorCode.NONE, ErrorCode.NONE]
    node.world.kill(1)
    node.start_all()
    again = attach(node)
    assert again.shards[0].state.values == {b"b": b"2"}
    assert again.shards[0].state.status == ["loaded"]


def test_an_answer_waits_for_what_it_rests_on() -> None:
    node = OneNode(replication_events_enable="false")
    attach(node)
    node.create(TOPIC, 1, {"cleanup.policy": "compact", "flush.messages": "1"})
    coordinator = node.process(1).node.broker.coordinators[TOPIC]
    answers: list[str] = []
    shard = coordinator.shards[0]
    shard.write([(b"a", b"1")], lambda _code: answers.append("write"))
    shard.write([], lambda _code: answers.append("read"))
    assert shard.state.values == {b"a": b"1"}, "applied at once"
    assert answers == [], "but nobody is told before it is on disk"
    run(node)
    node.world.run_for(100)
    assert answers == ["write", "read"]


def test_a_lost_leadership_is_told_to_whoever_waits(node: OneNode) -> None:
    core = node.process(1).node
    coordinator = core.broker.coordinators[TOPIC]
    shard = coordinator.shards[0]
    answers: list[ErrorCode] = []
    shard.partition.unflushed_from = 0  # as while a flush is under way
    shard.write([(b"a", b"1")], answers.append)
    shard.partition.become_follower(2, 9)
    core.broker.role_changed(shard.partition)
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert shard.status is ShardStatus.CLOSED
    assert shard.state.status == ["loaded", "closed"]
    with pytest.raises(KafkaError) as caught:
        shard.write([(b"b", b"2")], answers.append)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


def test_a_long_log_is_loaded_over_several_steps(node: OneNode) -> None:
    coordinator = node.process(1).node.broker.coordinators[TOPIC]
    shard = coordinator.shards[1]
    for number in range(30):
        shard.write([(b"%d" % number, b"x" * 100_000)], lambda _code: None)
    run(node)
    node.world.kill(1)
    node.start_all()
    again = attach(node)
    assert again.shards[1].status is ShardStatus.LOADING
    with pytest.raises(KafkaError) as caught:
        again.shards[1].check()
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    run(node)
    assert node.world.run_until(lambda: again.shards[1].status is ShardStatus.ACTIVE, within_ms=1_000)
    assert len(again.shards[1].state.values) == 30


def test_keys_go_where_kafka_puts_them() -> None:
    assert java_string_hash("") == 0
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 22
