"""A group outlives its coordinator: another node reads its partition's log and goes on."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.groups.support import GROUP
from tidelog.coordination import shard
from tidelog.coordination.coordinator import partition_for
from tidelog.coordination.shard import ShardStatus
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.service import TOPIC as OFFSETS
from tidelog.sim.cluster import NoAnswer, SimulatedCluster
from tidelog.sim.machines import Process
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch_header import HEADER_SIZE
from tidelog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.delete_groups import DeleteGroupsRequest
from tidelog.wire.messages.describe_groups import DescribeGroupsRequest
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
from tidelog.wire.messages.heartbeat import HeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.messages.list_groups import ListGroupsRequest
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_delete import OffsetDeleteRequest
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC = "events"


class Three(SimulatedCluster):
    """Three nodes and a client that looks for the coordinator whenever it has to."""

    def __init__(self, seed: int) -> None:
        settings = {
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            "replication.events.enable": "false",
        }
        super().__init__(seed, 3, settings)
        self.start_all()
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
        self.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))

    def coordinator(self) -> int:
        found: list[int] = []

        def look() -> bool:
            for node_id in self.living():
                request = FindCoordinatorRequest(coordinator_keys=[GROUP])
                try:
                    (one,) = self.ask(node_id, ApiKey.FIND_COORDINATOR, 6, request, 2_000).coordinators
                except NoAnswer:
                    continue
                if one.error_code == 0 and one.node_id in self.living():
                    found.append(one.node_id)
                    return True
            return False

        for _ in range(50):
            if look():
                return found[0]
            self.world.run_until(lambda: False, 200)
        raise AssertionError("no coordinator")

    def ask_group(self, api_key: ApiKey, version: int, body: Any, code_of: Any) -> Any:
        """As a client does it: again where the coordinator moved or still reads."""
        again = (
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )
        for _ in range(50):
            try:
                answer = self.ask(self.coordinator(), api_key, version, body, 10_000)
                if code_of(answer) not in again:
                    return answer
            except NoAnswer:
                pass
            self.world.run_until(lambda: False, 200)
        raise AssertionError("the group does not come back")

    def commit(self, offset: int, member_id: str = "", generation: int = -1) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        return int(self.ask_group(ApiKey.OFFSET_COMMIT, 9, request, _commit_code).topics[0].partitions[0].error_code)

    def committed(self) -> int:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
        answer = self.ask_group(ApiKey.OFFSET_FETCH, 9, request, lambda one: one.groups[0].error_code)
        return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def _commit_code(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def _code(answer: Any) -> int:
    return int(answer.error_code)


def test_a_commit_that_was_answered_is_never_lost() -> None:
    cluster = Three(seed=7)
    for offset in range(1, 7):
        assert cluster.commit(offset) == 0
        if offset % 2 == 0:
            killed = cluster.coordinator()
            cluster.world.kill(killed)
            assert cluster.committed() == offset
            assert cluster.coordinator() != killed
            cluster.world.start(killed)
            assert cluster.world.run_until(lambda: all(cluster.is_running(one) for one in cluster.node_ids), 60_000)


def test_a_generation_goes_on_with_the_next_coordinator() -> None:
    cluster = Three(seed=11)
    joining = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")],
    )
    joining.member_id = cluster.ask_group(ApiKey.JOIN_GROUP, 9, joining, _code).member_id
    joined = cluster.ask_group(ApiKey.JOIN_GROUP, 9, joining, _code)
    part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"part")
    syncing = SyncGroupRequest(
        group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[part]
    )
    assert cluster.ask_group(ApiKey.SYNC_GROUP, 5, syncing, _code).error_code == 0
    first = cluster.coordinator()
    cluster.world.kill(first)
    beat = HeartbeatRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id)
    assert cluster.ask_group(ApiKey.HEARTBEAT, 4, beat, _code).error_code == 0
    syncing.assignments = []
    assert bytes(cluster.ask_group(ApiKey.SYNC_GROUP, 5, syncing, _code).assignment) == b"part"
    assert cluster.commit(5, joined.member_id, joined.generation_id) == 0
    assert cluster.commit(6, joined.member_id, joined.generation_id - 1) == ErrorCode.ILLEGAL_GENERATION
    assert cluster.committed() == 5


@pytest.mark.parametrize("is_readable", [True, False])
def test_what_rot_has_changed_is_not_told_by_the_next_coordinator(is_readable: bool) -> None:
    """A record that still can be read would be told wrong; one that cannot be took the whole node with it."""
    cluster = Three(seed=7)
    offset = 1_234_567
    assert cluster.commit(offset) == 0
    index = partition_for(GROUP, 3)
    topic = cluster.newest_image().topic(OFFSETS)
    assert topic is not None
    first = cluster.coordinator()
    second = next(one for one in topic.partitions[index].replicas if one != first)
    disk = cluster.world.hosts[second].disks[0]
    path = f"{OFFSETS}-{index}/{'0' * 20}.log"
    log = cluster.process(second).node.replicas.partitions[OFFSETS, index].log
    assert cluster.world.run_until(lambda: log.log_end_offset == 1, 5_000)
    position = disk.read_file(path).index(struct.pack(">q", offset)) if is_readable else HEADER_SIZE
    disk.flip_bit(path, position + 7 if is_readable else position, 1)
    cluster.world.kill(first)
    assert cluster.committed() == offset
    assert second in cluster.living()


def test_a_coordinator_whose_clock_was_ahead_does_not_keep_the_next_one_from_assigning() -> None:
    """What its members were to have was made in the future: nobody got what one of them had for as long as that."""
    cluster = Three(seed=7)
    first = cluster.coordinator()
    cluster.world.hosts[first].clock.jump(cluster.world.now_ms, 3_600_000)
    cluster.world.run_until(lambda: False, 2_000)

    def beat(name: str, epoch: int) -> Any:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=epoch)
        if epoch == 0:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 30_000, [TOPIC]
            request.topic_partitions = []
        return cluster.ask_group(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, _code)

    assert beat("one", 0).assignment.topic_partitions
    first = cluster.coordinator()
    (group,) = [one.groups[GROUP] for one in cluster.process(first).node.groups.states() if GROUP in one.groups]
    assert isinstance(group, ConsumerGroup)
    assert group.assignment_timestamp_ms > cluster.world.now_ms + 3_000_000
    cluster.world.kill(first)
    epoch = beat("two", 0).member_epoch
    assert beat("one", -1).error_code == 0
    for _ in range(20):
        answer = beat("two", epoch)
        assert answer.error_code == 0
        epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
        cluster.world.run_until(lambda: False, 500)
    raise AssertionError("nobody reads")


def test_a_group_is_said_to_be_gone_when_that_is_committed() -> None:
    """Who was not answered asks again and takes this for done; with its coordinator the deletion was lost."""
    cluster = Three(seed=7)
    assert cluster.commit(5) == 0
    first = cluster.coordinator()
    for other in cluster.node_ids:
        if other != first:
            cluster.world.network.hold(other, first, ("data",))
    codes: list[int] = []
    for _ in range(2):
        connection = cluster.world.connect(first)
        assert connection is not None
        request = DeleteGroupsRequest(groups_names=[GROUP])
        cluster.world.request(
            connection, ApiKey.DELETE_GROUPS, 2, request, lambda one: codes.append(one.results[0].error_code)
        )
        cluster.world.run_until(lambda: False, 200)
    assert not codes
    cluster.world.network.heal()
    assert cluster.world.run_until(lambda: len(codes) == 2, 5_000)
    assert sorted(codes) == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def test_nodes_that_do_not_look_after_a_group_say_so() -> None:
    cluster = Three(seed=13)
    coordinator = cluster.coordinator()
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
    codes = {one: cluster.ask(one, ApiKey.HEARTBEAT, 4, beat).error_code for one in cluster.node_ids}
    assert codes[coordinator] == ErrorCode.UNKNOWN_MEMBER_ID
    assert {codes[one] for one in cluster.node_ids if one != coordinator} == {ErrorCode.NOT_COORDINATOR}


WHILE_READING: dict[str, tuple[ApiKey, int, Any, Any]] = {
    "join": (
        ApiKey.JOIN_GROUP,
        9,
        JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")],
        ),
        _code,
    ),
    "sync": (ApiKey.SYNC_GROUP, 5, SyncGroupRequest(group_id=GROUP, member_id="m"), _code),
    "heartbeat": (ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id=GROUP, member_id="m"), _code),
    "leave": (
        ApiKey.LEAVE_GROUP,
        5,
        LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="m")]),
        _code,
    ),
    "consumer heartbeat": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="m",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
        _code,
    ),
    "commit": (
        ApiKey.OFFSET_COMMIT,
        9,
        OffsetCommitRequest(
            group_id=GROUP,
            topics=[
                OffsetCommitRequestTopic(name=TOPIC, partitions=[OffsetCommitRequestPartition(committed_offset=9)])
            ],
        ),
        _commit_code,
    ),
    "fetch": (
        ApiKey.OFFSET_FETCH,
        9,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)]),
        lambda answer: answer.groups[0].error_code,
    ),
    "delete offsets": (ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=GROUP), _code),
    "delete": (
        ApiKey.DELETE_GROUPS,
        2,
        DeleteGroupsRequest(groups_names=[GROUP]),
        lambda answer: answer.results[0].error_code,
    ),
    "describe": (
        ApiKey.DESCRIBE_GROUPS,
        6,
        DescribeGroupsRequest(groups=[GROUP]),
        lambda answer: answer.groups[0].error_code,
    ),
    "describe consumer group": (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        lambda answer: answer.groups[0].error_code,
    ),
    "list": (ApiKey.LIST_GROUPS, 5, ListGroupsRequest(), _code),
}


def test_a_coordinator_that_still_reads_says_so_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Three(seed=19)
    for offset in range(40):
        assert cluster.commit(offset) == 0
    monkeypatch.setattr(shard, "LOAD_BYTES", 1)
    first = cluster.coordinator()
    cluster.world.kill(first)
    index = partition_for(GROUP, 3)

    def reading() -> list[Process]:
        processes = [cluster.process(one) for one in cluster.living()]
        shards = [(one, one.node.groups.coordinator.shards.get(index)) for one in processes]
        return [one for one, found in shards if found is not None and found.status is ShardStatus.LOADING]

    assert cluster.world.run_until(lambda: bool(reading()), 60_000)
    (process,) = reading()
    connection = cluster.world.connect(process.host.name)
    assert connection is not None
    codes: dict[str, int] = {}
    for slot, (name, (api_key, version, body, code_of)) in enumerate(WHILE_READING.items()):

        def answered(answer: Any, name: str = name, code_of: Any = code_of) -> None:
            codes[name] = code_of(answer)

        connection.answered[slot] = (api_key, version, answered)
        cluster.world.step(process, Request(connection.connection_id, slot, api_key, version, "sim", body))
    assert reading(), "all of it was asked while it read"
    assert cluster.world.run_until(lambda: len(codes) == len(WHILE_READING))
    assert codes == dict.fromkeys(WHILE_READING, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert cluster.committed() == 39, "and nothing of it was done"
