"""The group coordinator of a node: finds the shard that looks after a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidelog.config import NodeConfig
from tidelog.coordination.coordinator import Coordinator
from tidelog.coordination.shard import Shard, ShardStatus
from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic.group import ClassicGroup
from tidelog.groups.classic.join import Join, join
from tidelog.groups.classic.liveness import Leaving, heartbeat, leave
from tidelog.groups.classic.member import Reply
from tidelog.groups.classic.sync import Sync, sync
from tidelog.groups.consumer import classic_members
from tidelog.groups.consumer.heartbeat import Beat
from tidelog.groups.consumer.heartbeat import heartbeat as consumer_heartbeat
from tidelog.groups.state import GroupsState
from tidelog.groups.topics import Topics
from tidelog.outbox import Outbox
from tidelog.replica.replicas import Replicas

TOPIC = "__consumer_offsets"


class Groups:
    """All groups that this node looks after."""

    def __init__(
        self,
        outbox: Outbox,
        replicas: Replicas,
        config: Callable[[], NodeConfig],
        topics: Topics,
        overrides: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.topics = topics
        self._overrides = overrides
        """What was set on a group."""
        self._outbox = outbox
        self._config = config
        self.coordinator: Coordinator[GroupsState] = Coordinator(TOPIC, replicas, self._make_state)

    def _make_state(self, shard: Callable[[], Shard]) -> GroupsState:
        return GroupsState(self._outbox, self._config, self.topics, shard, self._overrides)

    def state_of(self, group_id: str) -> GroupsState:
        """The state with a group; raises what a client is told when that is not here or not read yet."""
        shard = self.coordinator.shard_of(group_id, self.topics.partitions_of(TOPIC))
        state = shard.state
        assert isinstance(state, GroupsState)
        return state

    def states(self) -> Iterator[GroupsState]:
        """Every shard of this node that has been read."""
        for shard in self.coordinator.shards.values():
            if shard.status is ShardStatus.ACTIVE and isinstance(shard.state, GroupsState):
                yield shard.state

    # --- members ---

    def join(self, request: Join, reply: Reply) -> None:
        """JoinGroup: answered when the join phase is over."""
        join(self._members_of(request.group_id), request, reply)

    def sync(self, request: Sync, reply: Reply) -> None:
        """SyncGroup: answered when the assignment is committed."""
        state = self._members_of(request.group_id)
        group = state.groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ClassicGroup):
            sync(state, group, request, reply)
        else:
            classic_members.sync(state, group, request, reply)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Heartbeat of a member of the classic protocol."""
        state = self._members_of(group_id)
        group = state.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ClassicGroup):
            return heartbeat(state, group, member_id, instance_id, generation)
        return classic_members.heartbeat(state, group, member_id, instance_id, generation)

    def leave(self, group_id: str, leaving: Sequence[Leaving], left: Callable[[list[ErrorCode]], None]) -> None:
        """LeaveGroup; nobody is in a group that is not there."""
        state = self._members_of(group_id)
        group = state.groups.get(group_id)
        if group is None:
            left([ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving))
        elif isinstance(group, ClassicGroup):
            left(leave(state, group, leaving))
        else:
            classic_members.leave(state, group, leaving, left)

    def consumer_heartbeat(self, request: Beat, reply: Reply) -> None:
        """ConsumerGroupHeartbeat: answered when what it changed is committed."""
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
        consumer_heartbeat(self.state_of(request.group_id), request, reply)

    def _members_of(self, group_id: str) -> GroupsState:
        """The state with a group that has members; those always have a name."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return self.state_of(group_id)

    @property
    def is_loading(self) -> bool:
        """Whether some shard is still being read."""
        return any(shard.status is ShardStatus.LOADING for shard in self.coordinator.shards.values())

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Offsets of a deleted topic go with it: a topic of the same name would begin at 0."""
        gone = frozenset(names)
        for state in list(self.states()):
            state.forget_topics(gone)
