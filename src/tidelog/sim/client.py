"""Clients of a simulated cluster: what producers, consumers and admins share. They see what a wire shows, no more.

A client stands at a place of its own, so the network between it and any node can be held, cut or slowed. Everything is
a continuation: nothing here waits, so that many clients live in one world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.network import Connection
from tidelog.sim.wires import CONNECT_TIMEOUT_MS
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA_VERSION = 12
TopicPartition = tuple[str, int]
Answered = Callable[[Any], None]


class Client:
    """Connections to brokers, and who leads what as far as this client was told."""

    def __init__(self, world: World, name: str, brokers: Sequence[int]) -> None:
        self.world = world
        self.name = name
        self.closed = False
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}
        """Leader and leader epoch; -1 while there is none."""
        self._brokers = list(brokers)
        self._connections: dict[int, Connection] = {}
        self._next_broker = 0

    def close(self) -> None:
        """Go away: nothing is sent any more and no answer is heard."""
        self.closed = True
        for connection in self._connections.values():
            self.world.close(connection, by=None)

    def ask(self, node_id: int, api_key: int, version: int, body: Any, answered: Answered, timeout_ms: int) -> None:
        """Send a request to one broker; `answered` gets None when there will be no answer."""
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            if self.world.is_cut(self.name, node_id):
                self.after(min(CONNECT_TIMEOUT_MS, timeout_ms), lambda: answered(None))
                return
            connection = self.world.connect(node_id, source=self.name)
            if connection is None:
                self.after(1, lambda: answered(None))
                return
            self._connections[node_id] = connection
        self.world.request(connection, api_key, version, body, answered, timeout_ms)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, unless this client is gone by then."""
        self.world.at(self.world.now_ms + delay_ms, lambda: None if self.closed else action())

    def any_broker(self) -> int:
        """The next broker to ask what any of them can answer: each in turn."""
        self._next_broker = (self._next_broker + 1) % len(self._brokers)
        return self._brokers[self._next_broker]

    def find_leader(self, topic: str, then: Callable[[], None]) -> None:
        """Ask one broker who leads a topic's partitions, then continue, whether it knew or not."""

        def answered(response: Any) -> None:
            for found in [] if response is None else response.topics:
                for partition in found.partitions:
                    key = (found.name, partition.partition_index)
                    # KIP-320: what an old broker says about an older epoch is no news.
                    if partition.leader_epoch >= self.leaders.get(key, (-1, -1))[1]:
                        self.leaders[key] = (partition.leader_id, partition.leader_epoch)
            then()

        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        self.ask(self.any_broker(), ApiKey.METADATA, METADATA_VERSION, request, answered, 2000)


class Admin(Client):
    """Asks for topics, settings and elections; tries again until somebody has answered for good."""

    def __init__(self, world: World, name: str, brokers: Sequence[int]) -> None:
        super().__init__(world, name, brokers)
        self.retry_ms = 100
        self.waiting = 0
        """For how many decisions it still waits."""

    def decide(self, api_key: int, version: int, body: Any, code_of: Callable[[Any], int], then: Answered) -> None:
        """Send what the controller decides to any broker, again while the answer is one to try again on."""

        def answered(response: Any) -> None:
            code = ErrorCode.NETWORK_EXCEPTION if response is None else ErrorCode(code_of(response))
            if code in _ASK_AGAIN:
                self.after(self.retry_ms, ask)
            else:
                self.waiting -= 1
                then(response)

        def ask() -> None:
            self.ask(self.any_broker(), api_key, version, body, answered, 5000)

        self.waiting += 1
        ask()

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str], then: Answered
    ) -> None:
        """Make a topic whose partitions have these replicas, the preferred leader first."""
        wanted = CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1)
        wanted.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignment)
        ]
        wanted.configs = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
        self.decide(
            ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wanted]), lambda one: one.topics[0].error_code, then
        )

    def alter_topic(self, topic: str, configs: Mapping[str, str], then: Answered) -> None:
        """Change settings of a topic."""
        resource = AlterConfigsResource(
            resource_type=2,
            resource_name=topic,
            configs=[AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self.decide(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, lambda one: one.responses[0].error_code, then)

    def elect(self, election_type: int, topic: str, partitions: Sequence[int], then: Answered) -> None:
        """Ask for a preferred (0) or an unclean (1) election."""
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=[TopicPartitions(topic=topic, partitions=list(partitions))],
            timeout_ms=5000,
        )
        self.decide(ApiKey.ELECT_LEADERS, 2, request, lambda one: one.error_code, then)

    def reassign(self, topic: str, partition: int, replicas: Sequence[int], then: Answered) -> None:
        """Move a partition to other brokers."""
        wanted = ReassignablePartition(partition_index=partition, replicas=list(replicas))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=5000, topics=[ReassignableTopic(name=topic, partitions=[wanted])]
        )
        self.decide(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request, lambda one: one.error_code, then)


_ASK_AGAIN = frozenset((ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT))
