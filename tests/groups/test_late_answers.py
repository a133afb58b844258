"""What members, offsets and shards hear when something else has happened since they asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, ClassicMember, GroupNode
from tests.groups.test_failover import TOPIC, NoAnswer, Three, _code
from tests.groups.test_migration import part
from tidelog.coordination import shard
from tidelog.coordination.coordinator import partition_for
from tidelog.coordination.shard import ShardStatus
from tidelog.effects import Reply
from tidelog.errors import ErrorCode, StorageError
from tidelog.node.life import Life
from tidelog.sim.cluster import SimulatedCluster
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.messages.heartbeat import HeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.stored import encode_versioned

SAME_SHARD = next(name for name in (f"g{n}" for n in range(99)) if partition_for(name, 3) == partition_for(GROUP, 3))


class Held(Three):
    """Three nodes; what the coordinator writes can be kept from being committed."""

    first: int

    def send(self, api_key: int, version: int, body: Any) -> list[Any]:
        """Ask the coordinator; the answers come when they come."""
        answers: list[Any] = []
        self.world.request(self.world.connect(self.first), api_key, version, body, answers.append)
        self.world.run_until(lambda: False, 50)
        return answers

    def hold(self) -> None:
        for other in self.node_ids:
            if other != self.first:
                self.world.network.hold(other, self.first, ("data",))


class HeldOfShortSessions(Held):
    """Sessions of the consumer protocol are shorter than a write may take."""

    def __init__(self, seed: int) -> None:
        settings = {
            "offsets.topic.num.partitions": "3",
            "replication.events.enable": "false",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "2000",
            "group.consumer.min.heartbeat.interval.ms": "500",
            "group.consumer.heartbeat.interval.ms": "500",
        }
        SimulatedCluster.__init__(self, seed, 3, settings)
        self.start_all()
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
        self.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))


def beat(member_id: str, epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )


def is_given(answers: list[Any]) -> bool:
    """Whether somebody was told that the only partition is its own."""
    return any(
        one.error_code == 0 and one.assignment is not None and bool(one.assignment.topic_partitions) for one in answers
    )


def test_a_classic_member_that_was_taken_out_while_its_sync_waited_is_given_nothing() -> None:
    """In a group of both protocols: another had been given its partition meanwhile, and both were told it is theirs."""
    cluster = Held(seed=5)
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=[TOPIC]), 2)
    join = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=2_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
    )
    join.member_id = cluster.ask_group(ApiKey.JOIN_GROUP, 9, join, _code).member_id
    joined = cluster.ask_group(ApiKey.JOIN_GROUP, 9, join, _code)
    cluster.first = cluster.coordinator()
    own = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=part(0))
    sync = SyncGroupRequest(
        group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[own]
    )
    cluster.ask_group(ApiKey.SYNC_GROUP, 5, sync, _code)
    modern = cluster.ask_group(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("modern"), _code)
    generation = cluster.ask_group(ApiKey.JOIN_GROUP, 9, join, _code).generation_id
    cluster.hold()
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(group_id=SAME_SHARD, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[row])])
    cluster.send(ApiKey.OFFSET_COMMIT, 9, commit)
    again = SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=joined.member_id)
    synced = cluster.send(ApiKey.SYNC_GROUP, 5, again)
    assert synced == [], "it waits"
    cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("third"))
    alive = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=joined.member_id)
    assert [one.error_code for one in cluster.send(ApiKey.HEARTBEAT, 4, alive)] == [ErrorCode.REBALANCE_IN_PROGRESS]
    cluster.world.run_until(lambda: False, 2_500)
    given = cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("modern", modern.member_epoch))
    given += cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("third"))
    cluster.world.network.heal()
    cluster.world.run_for(1_500)
    assert is_given(given)
    assert [one.error_code for one in synced] == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_member_that_was_taken_out_while_its_join_waited_is_given_nothing() -> None:
    cluster = HeldOfShortSessions(5)
    cluster.first = cluster.coordinator()
    cluster.world.run_for(2_000)
    cluster.hold()
    first = cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("first"))
    cluster.world.run_until(lambda: False, 2_200)
    second = cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("second"))
    cluster.world.run_until(lambda: False, 1_200)
    second += cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat("second"))
    cluster.world.network.heal()
    cluster.world.run_for(1_500)
    assert is_given(second)
    assert [one.error_code for one in first] == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_offsets_of_a_topic_go_with_it_though_nobody_looked_after_them_then() -> None:
    """Their coordinator was dead when it was deleted: the next topic of that name was read from the old offset on."""
    cluster = Three(seed=19)
    for offset in range(40):
        assert cluster.commit(offset) == 0
    first = cluster.coordinator()
    other = next(one for one in cluster.node_ids if one != first)
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5_000)
    cluster.world.kill(first)

    def is_deleted() -> bool:
        try:
            return bool(cluster.ask(other, ApiKey.DELETE_TOPICS, 6, delete, 10_000).responses[0].error_code == 0)
        except NoAnswer:
            return False

    assert any(is_deleted() for _ in range(50))
    cluster.world.run_for(15_000)
    again = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=2)])
    assert cluster.ask(other, ApiKey.CREATE_TOPICS, 7, again, 10_000).topics[0].error_code == 0
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    answer = cluster.ask_group(ApiKey.OFFSET_FETCH, 9, asked, lambda one: one.groups[0].error_code)
    assert answer.groups[0].topics == []


def test_a_shard_goes_on_loading_where_its_log_starts_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """With cleanup.policy=compact,delete: what it was about to read was gone, and a log that was well was given up."""
    node = GroupNode(seed=3)
    for offset in range(60):
        node.commit({0: offset})
    monkeypatch.setattr(shard, "LOAD_BYTES", 200)
    node.world.kill(1)
    node.world.start(1)
    assert node.world.run_until(lambda: node.process(1).node.groups.is_loading, 30_000)
    (loading,) = [
        one
        for one in node.process(1).node.groups.coordinator.shards.values()
        if one.status is ShardStatus.LOADING and one.partition.log.log_end_offset
    ]
    loading.partition.raise_log_start(loading._load_offset + 20)
    node.pass_ms(20_000)
    assert loading.status is ShardStatus.ACTIVE
    assert [one for _, _, one in node.world.told if one.kind == "log-damaged"] == []


def test_a_static_member_that_comes_back_when_the_disk_fails_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two answers to one request: its connection was closed, with all else that waited there."""
    node = GroupNode(seed=3)
    member = ClassicMember(node, instance_id="one")
    member.join()
    own = SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"x")
    sync = SyncGroupRequest(
        group_id=GROUP,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id="one",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[own],
    )
    assert member.ask(ApiKey.SYNC_GROUP, 5, sync).error_code == 0
    core = node.process(1).node
    log = node.state()._answers._shard().partition.log

    def fail(*_: Any, **__: Any) -> None:
        raise StorageError("/data", "x", "input/output error")

    monkeypatch.setattr(type(log), "append_as_leader", fail)
    monkeypatch.setattr(Life, "_is_lost", property(lambda _: False))  # as with another directory that is well
    replies: list[ErrorCode] = []
    step = core.step

    def noting(event: Any, now_ms: int) -> list[Any]:
        effects = step(event, now_ms)
        bodies = [one.body for one in effects if isinstance(one, Reply)]
        replies.extend(ErrorCode(one.error_code) for one in bodies if isinstance(one, JoinGroupResponse))
        return effects

    monkeypatch.setattr(core, "step", noting)
    back = ClassicMember(node, instance_id="one")
    back.send(ApiKey.JOIN_GROUP, 9, back.join_request())
    assert replies == [ErrorCode.NOT_COORDINATOR]
