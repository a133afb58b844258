"""One simulated node that looks after groups, and the requests of their members."""

from __future__ import annotations

from typing import Any

from tests.node.support import TOPIC, OneNode
from tidelog.groups.state import GroupsState
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
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

GROUP = "readers"


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
