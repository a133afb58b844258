"""A classic group that is over (deleted, of the other protocol, looked after elsewhere) does nothing any more."""

from __future__ import annotations

from typing import Any

from tests.groups.support import GROUP
from tests.groups.test_failover import TOPIC, Three
from tidelog.coordination.shard import Shard
from tidelog.errors import ErrorCode
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.stored import encode_versioned

COMMIT_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 5_000, 2_000


class Stalled(Three):
    """A classic group whose leader has sent the assignment, which nobody but the coordinator has in its log."""

    def __init__(self) -> None:
        super().__init__(seed=5)
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=[TOPIC]), 2)
        self.joining = joining = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        joining.member_id = self.ask_group(ApiKey.JOIN_GROUP, 9, joining, _code).member_id
        joined = self.ask_group(ApiKey.JOIN_GROUP, 9, joining, _code)
        self.first = self.coordinator()
        self.shard = self.shard_of(self.first)
        for other in self.node_ids:
            if other != self.first:
                self.world.network.hold(other, self.first, ("data",))
        part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        self.answers: list[Any] = []
        self.send(
            ApiKey.SYNC_GROUP,
            5,
            SyncGroupRequest(
                group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[part]
            ),
        )
        assert self.group.state is State.COMPLETING_REBALANCE

    def send(self, api_key: ApiKey, version: int, body: Any) -> None:
        connection = self.world.connect(self.first)
        assert connection is not None
        self.world.request(connection, api_key, version, body, self.answers.append)
        self.world.run_until(lambda: False, 50)

    def read_anew(self) -> None:
        """A new coordinator on the same node: the assignment is in the log, and nowhere else."""
        coordinator = self.process(self.first).node.groups.coordinator
        partition = self.shard.partition
        self.shard.close()
        coordinator.shards.clear()
        coordinator.role_changed(partition)
        self.shard = self.shard_of(self.first)
        assert self.group.state is State.STABLE
        assert self.world.run_until(lambda: bool(self.answers), 1_000)  # who waited is sent away
        self.answers.clear()

    def shard_of(self, node_id: int) -> Shard:
        coordinator = self.process(node_id).node.groups.coordinator
        return next(one for one in coordinator.shards.values() if GROUP in one.state.groups)  # type: ignore[attr-defined]

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.state.groups[GROUP]  # type: ignore[attr-defined]
        assert isinstance(group, ClassicGroup)
        return group


def _code(answer: Any) -> int:
    return int(answer.error_code)


def test_a_classic_group_that_was_taken_over_is_not_written_over_its_successor() -> None:
    """Its assignment could not be stored in time, it began to rebalance, and ended as an empty group in the log."""
    cluster = Stalled()
    former = cluster.group
    modern = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="modern",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    cluster.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, modern)
    assert former.state is State.DEAD
    cluster.world.run_until(lambda: False, COMMIT_TIMEOUT_MS + REBALANCE_TIMEOUT_MS + 1_000)
    cluster.world.network.heal()
    cluster.world.run_until(lambda: False, 1_000)
    cluster.world.kill(cluster.first)
    group = cluster.shard_of(cluster.coordinator()).state.groups[GROUP]  # type: ignore[attr-defined]
    assert isinstance(group, ConsumerGroup)
    assert "modern" in group.members


def test_what_was_waited_for_by_a_coordinator_that_is_over_begins_nothing() -> None:
    """The replica goes, and whoever waits for its records is told after the coordinator has stopped its timers."""
    cluster = Stalled()
    former, coordinator = cluster.group, cluster.process(cluster.first).node.groups.coordinator
    partition = cluster.shard.partition
    coordinator.removed(partition)
    partition.go_offline(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    cluster.world.run_until(lambda: bool(cluster.answers), 1_000)
    assert cluster.answers[0].error_code == ErrorCode.NOT_COORDINATOR
    assert (former.state, former.join_timer) == (State.DEAD, None)


def test_an_assignment_that_was_read_is_told_when_it_is_committed() -> None:
    """Seed 932074 of a hunt: a new coordinator told one that was lost with it, and its generation was there twice."""
    cluster = Stalled()
    member_id, generation = next(iter(cluster.group.members)), cluster.group.generation
    cluster.read_anew()
    asked = SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
    cluster.send(ApiKey.SYNC_GROUP, 5, asked)
    cluster.world.run_until(lambda: bool(cluster.answers), 500)
    assert not cluster.answers
    cluster.world.network.heal()
    assert cluster.world.run_until(lambda: any(one.error_code == 0 for one in cluster.answers), 5_000)


def test_a_generation_has_one_assignment_though_its_leader_sends_two() -> None:
    """Unanswered it joined again and shared out anew: one was told, and the other was the next coordinator's."""
    cluster = Stalled()
    member_id, generation = next(iter(cluster.group.members)), cluster.group.generation
    part = SyncGroupRequestAssignment(member_id=member_id, assignment=b"another")
    again = SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member_id, assignments=[part])
    cluster.send(ApiKey.SYNC_GROUP, 5, again)
    cluster.world.network.heal()
    assert cluster.world.run_until(lambda: len(cluster.answers) == 2, 5_000)
    (told,) = [bytes(one.assignment) for one in cluster.answers if one.error_code == 0]
    assert cluster.world.run_until(
        lambda: cluster.shard.partition.high_watermark == cluster.shard.partition.log.log_end_offset, 5_000
    )
    cluster.world.kill(cluster.first)
    again.assignments = []
    assert bytes(cluster.ask_group(ApiKey.SYNC_GROUP, 5, again, _code).assignment) == told


def test_an_assignment_is_not_told_when_its_generation_is_over_by_the_time_it_is_committed() -> None:
    """Whoever was waited for in vain meanwhile began to read what the next generation had given to another."""
    cluster = Stalled()
    member_id, generation = next(iter(cluster.group.members)), cluster.group.generation
    cluster.read_anew()
    asked = SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
    cluster.send(ApiKey.SYNC_GROUP, 5, asked)
    assert not cluster.answers
    late, cluster.answers = cluster.answers, []
    joining = cluster.joining
    joining.member_id = ""
    cluster.send(ApiKey.JOIN_GROUP, 9, joining)
    joining.member_id = cluster.answers[0].member_id
    cluster.send(ApiKey.JOIN_GROUP, 9, joining)
    assert cluster.world.run_until(lambda: cluster.group.generation == generation + 1, REBALANCE_TIMEOUT_MS + 500)
    assert not late
    cluster.world.network.heal()
    assert cluster.world.run_until(lambda: bool(late), 1_000)
    assert late[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
