"""Calls about the cluster as a whole: its brokers, its quorum, elections and reassignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.client import Client, TopicPartition
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages import add_raft_voter
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest
from tidelog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tidelog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

METADATA_TOPIC = "__cluster_metadata"
ELECTIONS = {"preferred": 0, "unclean": 1}
_TRY_AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class Reassignment(NamedTuple):
    """A partition whose replicas are being moved."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class ClusterBrokers(NamedTuple):
    """All brokers that are registered, alive or not."""

    cluster_id: str
    brokers: list[DescribeClusterBroker]


def list_brokers(client: Client) -> ClusterBrokers:
    """Every registered broker, fenced ones too where the cluster can tell (KIP-1073)."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    answer = _ask(client, request, lambda found: [(found.error_code, found.error_message)])
    return ClusterBrokers(answer.cluster_id, sorted(answer.brokers, key=lambda broker: broker.broker_id))


def describe_quorum(client: Client) -> DescribeQuorumResponse:
    """Who votes, who leads, how far each is."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )

    def errors(answer: DescribeQuorumResponse) -> Iterable[tuple[int, str | None]]:
        yield answer.error_code, answer.error_message
        for topic in answer.topics:
            for one in topic.partitions:
                yield one.error_code, one.error_message

    answer: DescribeQuorumResponse = _ask(client, request, errors)
    return answer


def add_voter(
    client: Client, cluster_id: str, node_id: int, directory_id: bytes, listeners: Sequence[tuple[str, str, int]]
) -> None:
    """Make a controller that follows the quorum one of its voters (KIP-853); listeners are name, host and port."""
    request = add_raft_voter.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=client.timeout_ms,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[add_raft_voter.Listener(name=name, host=host, port=port) for name, host, port in listeners],
    )
    # A voter that has not caught up yet, or a change before this one, is a matter of moments.
    _ask(client, request, lambda found: [(found.error_code, found.error_message)], patient=True)


def remove_voter(client: Client, node_id: int, directory_id: bytes) -> None:
    """Take a voter out of the quorum; it goes on as an observer if it runs."""
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id)
    _ask(client, request, lambda found: [(found.error_code, found.error_message)])


def elect_leaders(
    client: Client, kind: str, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, KafkaError | None]:
    """Ask for elections of partitions, or wherever one is needed (None); of each, None or why it was refused."""
    request = ElectLeadersRequest(
        election_type=ELECTIONS[kind],
        topic_partitions=None
        if partitions is None
        else [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in _by_topic(partitions)],
        timeout_ms=client.timeout_ms,
    )
    answer = _ask(client, request, lambda found: [(found.error_code, None)])
    return {
        (topic.topic, one.partition_id): error_of(one.error_code, one.error_message) if one.error_code else None
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def alter_reassignments(
    client: Client, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, KafkaError | None]:
    """Move partitions to new replicas, or cancel (None); of each, None or why it was refused."""
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(
                        partition_index=number,
                        replicas=None if (target := targets[topic, number]) is None else [*target],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in _by_topic(list(targets))
        ],
        timeout_ms=client.timeout_ms,
    )
    answer = _ask(client, request, lambda found: [(found.error_code, found.error_message)])
    return {
        (topic.name, one.partition_index): error_of(one.error_code, one.error_message) if one.error_code else None
        for topic in answer.responses
        for one in topic.partitions
    }


def list_reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """Every partition that is being moved."""
    request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=client.timeout_ms)
    answer = _ask(client, request, lambda found: [(found.error_code, found.error_message)])
    return {
        (topic.name, one.partition_index): Reassignment(one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in answer.topics
        for one in topic.partitions
    }


def _by_topic(partitions: Sequence[TopicPartition]) -> list[tuple[str, list[int]]]:
    grouped = groupby(sorted(set(partitions)), key=lambda where: where[0])
    return [(topic, [number for _, number in group]) for topic, group in grouped]


def _ask(
    client: Client,
    request: Message,
    errors: Callable[[Any], Iterable[tuple[int, str | None]]],
    *,
    patient: bool = False,
) -> Any:
    """Ask any broker, which asks the controller; while there is none it is tried again.

    `patient` also tries again what the controller had no time for.
    """
    deadline = Deadline(client.timeout_ms)
    while True:
        answer = client.ask(request, timeout_ms=deadline.remaining_ms)
        error = next((error_of(code, message) for code, message in errors(answer) if code), None)
        if error is None:
            return answer
        if error.code not in _TRY_AGAIN and not (patient and error.code == ErrorCode.REQUEST_TIMED_OUT):
            raise error
        client.turn_elsewhere()
        deadline.pause(error)
