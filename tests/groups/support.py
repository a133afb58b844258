"""One simulated node that looks after groups, and the requests of their members."""

from __future__ import annotations

from typing import Any

from tests.node.support import TOPIC, OneNode
from tidelog.errors import ErrorCode
from tidelog.groups.state import GroupsState
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
from tidelog.wire.messages.heartbeat import HeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "readers"
ARRIVAL_MS = 20
"""Enough for a request to arrive before what another connection sends next."""


class GroupNode(OneNode):
    """A started node whose offsets topic is there."""

    def __init__(self, seed: int = 1, partitions: int = 4, **settings: str) -> None:
        defaults = {
            "offsets_topic_num_partitions": "3",
            "group_initial_rebalance_delay_ms": "0",
            "replication_events_enable": "false",
        }
        super().__init__(seed, partitions, None, **{**defaults, **settings})
        self.find(GROUP)

    def find(self, group: str, version: int = 6, key_type: int = 0) -> Any:
        request = FindCoordinatorRequest(key=group, coordinator_keys=[group], key_type=key_type)
        return self.ask(1, ApiKey.FIND_COORDINATOR, version, request)

    def state(self, group: str = GROUP) -> GroupsState:
        return self.process(1).node.groups.state_of(group)

    def restart(self) -> None:
        """Kill -9 and start again."""
        self.world.kill(1)
        self.world.start(1)
        assert self.world.run_until(lambda: self.is_running(1))

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.world.now_ms + duration_ms
        self.world.run_until(lambda: self.world.now_ms >= end_ms, duration_ms + 1)

    def commit(
        self,
        offsets: dict[int, int],
        *,
        group: str = GROUP,
        topic: str = TOPIC,
        version: int = 9,
        metadata: str | None = "",
        epoch: int = -1,
        **more: Any,
    ) -> Any:
        """The codes by partition."""
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata=metadata,
            )
            for index, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=self.topic_id(topic), partitions=partitions)],
            **more,
        )
        answer = self.ask(1, ApiKey.OFFSET_COMMIT, version, request)
        return {one.partition_index: one.error_code for one in answer.topics[0].partitions}

    def fetch_offsets(
        self,
        wanted: list[int] | None,
        *,
        group: str = GROUP,
        topic: str = TOPIC,
        version: int = 9,
        require_stable: bool = False,
        **more: Any,
    ) -> Any:
        """The answer of one group."""
        request = OffsetFetchRequest(group_id=group, require_stable=require_stable)
        if version < 8:
            request.topics = None if wanted is None else [OffsetFetchRequestTopic(name=topic, partition_indexes=wanted)]
        else:
            topics = (
                None
                if wanted is None
                else [OffsetFetchRequestTopics(name=topic, topic_id=self.topic_id(topic), partition_indexes=wanted)]
            )
            request.groups = [OffsetFetchRequestGroup(group_id=group, topics=topics, **more)]
        answer = self.ask(1, ApiKey.OFFSET_FETCH, version, request)
        return answer.groups[0] if version >= 8 else answer

    def committed(self, group: str = GROUP, topic: str = TOPIC) -> dict[int, int]:
        """What the group has committed, by partition."""
        answer = self.fetch_offsets(None, group=group)
        assert answer.error_code == 0
        return {
            one.partition_index: one.committed_offset
            for told in answer.topics
            if told.name == topic
            for one in told.partitions
        }


class Asked:
    """A request on its way, and its answer when it has come."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    @property
    def answer(self) -> Any:
        assert self.answers, "not answered yet"
        return self.answers[0]


class ClassicMember:
    """A client of the classic protocol on a connection of its own."""

    def __init__(self, node: GroupNode, group: str = GROUP, instance_id: str | None = None, **more: Any) -> None:
        self.node = node
        self.group = group
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.protocols = {"range": b"r", "roundrobin": b"rr"}
        self.joining = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, **more}
        connection = node.world.connect(1)
        assert connection is not None
        self.connection = connection

    def send(self, api_key: ApiKey, version: int, body: Any) -> Asked:
        asked = Asked()
        self.node.world.request(self.connection, api_key, version, body, asked.answers.append)
        self.node.pass_ms(ARRIVAL_MS)
        return asked

    def ask(self, api_key: ApiKey, version: int, body: Any) -> Any:
        asked = self.send(api_key, version, body)
        assert self.node.world.run_until(lambda: bool(asked.answers), 60_000), "no answer"
        return asked.answer

    def join_request(self, **more: Any) -> JoinGroupRequest:
        return JoinGroupRequest(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                "protocols": [JoinGroupRequestProtocol(name=name, metadata=at) for name, at in self.protocols.items()],
                **self.joining,
                **more,
            }
        )

    def start_join(self, version: int = 9, **more: Any) -> Asked:
        """Join; a new member is first given its id."""
        if version >= 4 and not self.member_id and self.instance_id is None:
            told = self.ask(ApiKey.JOIN_GROUP, version, self.join_request(**more))
            assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = told.member_id
        return self.send(ApiKey.JOIN_GROUP, version, self.join_request(**more))

    def joined(self, asked: Asked) -> Any:
        """Wait for a join's answer and take part in its generation."""
        assert self.node.world.run_until(lambda: bool(asked.answers), 60_000), "no answer"
        answer = asked.answer
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def join(self, **more: Any) -> Any:
        return self.joined(self.start_join(**more))

    def start_sync(self, assignments: dict[str, bytes] | None = None, version: int = 5, **more: Any) -> Asked:
        request = SyncGroupRequest(
            **{
                "group_id": self.group,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "assignments": [
                    SyncGroupRequestAssignment(member_id=name, assignment=part)
                    for name, part in (assignments or {}).items()
                ],
                **more,
            }
        )
        return self.send(ApiKey.SYNC_GROUP, version, request)

    def sync(self, assignments: dict[str, bytes] | None = None, **more: Any) -> Any:
        asked = self.start_sync(assignments, **more)
        assert self.node.world.run_until(lambda: bool(asked.answers), 60_000), "no answer"
        return asked.answer

    def heartbeat(self, version: int = 4, **more: Any) -> ErrorCode:
        request = HeartbeatRequest(
            **{
                "group_id": self.group,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                **more,
            }
        )
        return ErrorCode(self.ask(ApiKey.HEARTBEAT, version, request).error_code)

    def leave(self, version: int = 5) -> Any:
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=[member])
        return self.ask(ApiKey.LEAVE_GROUP, version, request)

    def commit(self, offsets: dict[int, int], **more: Any) -> Any:
        return self.node.commit(
            offsets,
            group=self.group,
            **{
                "member_id": self.member_id,
                "generation_id_or_member_epoch": self.generation,
                "group_instance_id": self.instance_id,
                **more,
            },
        )


def settle(members: list[ClassicMember]) -> dict[str, bytes]:
    """All join and sync; the leader gives each member its own name. Returns what each was given."""
    newest_first = sorted(members, key=lambda member: bool(member.member_id))  # who is in already joins again last
    asked = [member.start_join() for member in newest_first]
    for member, one in zip(newest_first, asked, strict=True):
        member.joined(one)
    leader_id = asked[0].answer.leader
    leader = next(member for member in members if member.member_id == leader_id)
    parts = {member.member_id: member.member_id.encode() for member in members}
    syncs = [(member, member.start_sync(parts if member is leader else None)) for member in members]
    world = members[0].node.world
    assert world.run_until(lambda: all(sync.answers for _, sync in syncs), 60_000)
    return {member.member_id: bytes(sync.answer.assignment) for member, sync in syncs}


class ConsumerMember:
    """A client of the consumer protocol: it says what it has, and takes over what it is told."""

    def __init__(
        self,
        node: GroupNode,
        name: str,
        *,
        group: str = GROUP,
        topics: list[str] | None = None,
        pattern: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.node = node
        self.group = group
        self.member_id = name
        self.topics = [TOPIC] if topics is None and pattern is None else topics
        self.pattern = pattern
        self.instance_id = instance_id
        self.assignor = assignor
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.next: dict[bytes, list[int]] | None = None
        """What it was told to have and has not taken over yet."""

    def request(self, **more: Any) -> ConsumerGroupHeartbeatRequest:
        partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in self.owned.items()
        ]
        return ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "instance_id": self.instance_id,
                "rebalance_timeout_ms": 30_000,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.pattern,
                "server_assignor": self.assignor,
                "topic_partitions": partitions if self.epoch else [],
                **more,
            }
        )

    def ask(self, **more: Any) -> Any:
        return self.node.ask(1, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, self.request(**more))

    def beat(self, *, takes_over: bool = True, **more: Any) -> Any:
        """One heartbeat: what it was told before is what it has now."""
        if takes_over and self.next is not None:
            self.owned, self.next = self.next, None
        answer = self.ask(**more)
        assert answer.error_code == 0, (ErrorCode(answer.error_code), answer.error_message)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.next = {one.topic_id: list(one.partitions) for one in answer.assignment.topic_partitions}
        return answer

    def code(self, **more: Any) -> ErrorCode:
        return ErrorCode(self.ask(**more).error_code)

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """What it reads now."""
        return {
            (self.node.process(1).node.topic_name(topic_id) or "", number)
            for topic_id, numbers in self.owned.items()
            for number in numbers
        }

    def leave(self, epoch: int = -1) -> ErrorCode:
        return self.code(member_epoch=epoch)


def beat_until_settled(members: list[ConsumerMember], rounds: int = 8) -> None:
    """Heartbeats in turn; at no moment do two members read the same partition."""
    for _ in range(rounds):
        for member in members:
            member.beat()
            read = [partition for one in members for partition in one.partitions]
            assert len(read) == len(set(read)), "a partition has two owners"
        members[0].node.pass_ms(600)
