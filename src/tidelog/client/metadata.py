"""What a client knows of a cluster: its brokers, and who leads which partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from tidelog.wire.uuids import ZERO_UUID

NO_LEADER = -1


class Broker(NamedTuple):
    """A broker as it advertises itself."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


class PartitionView(NamedTuple):
    """A partition as the last answer about it told."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    eligible_leaders: list[int]
    """Replicas outside the ISR that may lead without loss (KIP-966); known from DescribeTopicPartitions only."""
    last_known_eligible: list[int]


class TopicView(NamedTuple):
    """A topic as the last answer about it told."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionView]


class Metadata:
    """The cache. It is only as fresh as the last answer; whoever is told that it is stale refreshes it."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicView] = {}
        self.topic_errors: dict[str, int] = {}
        """Why a topic that was asked for is not in `topics`."""
        self.cluster_id: str | None = None
        self.controller_id = -1

    def update(self, answer: MetadataResponse) -> None:
        """Take a whole answer: its brokers replace what was known, its topics are added.

        Who answers may have heard less than others before: a leader of an earlier epoch is not believed (KIP-320).
        """
        self.brokers = {
            broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers
        }
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        for topic in answer.topics:
            if topic.name is None:
                continue
            known = self.topics.pop(topic.name, None)
            self.topic_errors.pop(topic.name, None)
            if topic.error_code:
                self.topic_errors[topic.name] = topic.error_code
            else:
                self.topics[topic.name] = _newer(_topic_view(topic), known)

    def knows(self, topic: str, partition: int) -> bool:
        """Whether the last answer told of a partition, with a leader or without."""
        view = self.topics.get(topic)
        return view is not None and partition in view.partitions

    def leader_of(self, topic: str, partition: int) -> PartitionView:
        """The partition with its leader; a retriable KafkaError when nobody leads it or it is not known."""
        view = self.topics.get(topic)
        if view is None:
            code = self.topic_errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(ErrorCode(code), f"topic {topic!r} is not known")
        found = view.partitions.get(partition)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} has no partition {partition}")
        if found.leader == NO_LEADER or found.leader not in self.brokers:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {topic}-{partition} has no leader")
        return found

    def topic_named_by(self, topic_id: bytes) -> str | None:
        """The name of a topic by its id."""
        return next((name for name, view in self.topics.items() if view.topic_id == topic_id), None)

    def take_leader_hint(self, topic: str, partition: int, leader: Any, endpoints: Iterable[Any]) -> bool:
        """Believe an answer that names the new leader (KIP-951), if it is newer than what is known."""
        view = self.topics.get(topic)
        known = view.partitions.get(partition) if view else None
        if leader is None or known is None or leader.leader_id < 0 or leader.leader_epoch <= known.leader_epoch:
            return False
        for endpoint in endpoints:
            self.brokers[endpoint.node_id] = Broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
        if leader.leader_id not in self.brokers:
            return False
        assert view is not None
        view.partitions[partition] = known._replace(leader=leader.leader_id, leader_epoch=leader.leader_epoch)
        return True


def _newer(told: TopicView, known: TopicView | None) -> TopicView:
    """A topic as told, but with those partitions as known whose leader is of a later epoch."""
    if known is None or known.topic_id != told.topic_id or told.topic_id == ZERO_UUID:
        return told
    for number, partition in told.partitions.items():
        before = known.partitions.get(number)
        if before is not None and before.leader_epoch > partition.leader_epoch:
            told.partitions[number] = before
    return told


def _topic_view(topic: MetadataResponseTopic) -> TopicView:
    partitions = {
        partition.partition_index: PartitionView(
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            partition.replica_nodes,
            partition.isr_nodes,
            partition.offline_replicas,
            [],
            [],
        )
        for partition in topic.partitions
    }
    return TopicView(topic.name or "", topic.topic_id or ZERO_UUID, topic.is_internal, dict(sorted(partitions.items())))
