"""ElectLeaders 0-2 (KIP-460), and elections nobody asks for: back to preferred leaders, and where nobody leads."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.controller.decide.decision import (
    MAX_ELECTIONS_PER_ROUND,
    Context,
    Decision,
    find_partition,
)
from tidelog.controller.decide.partition_change import Election
from tidelog.controller.decide.partition_updates import add_change, changer, update_partitions, without_leader
from tidelog.controller.entities import NO_LEADER, Partition, Topic
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1


def decide(image: MetadataImage, request: ElectLeadersRequest, context: Context) -> Decision:
    """Elect for the partitions named, or for all of them, leaving out of the answer those that need none."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    decision = Decision(ElectLeadersResponse())
    everything = request.topic_partitions is None
    wanted: Iterable[tuple[str, Iterable[int]]]
    if request.topic_partitions is None:
        wanted = [(name, sorted(image.topics[topic_id].partitions)) for name, topic_id in image.topic_ids.items()]
    else:
        wanted = [(each.topic, each.partitions) for each in request.topic_partitions]
    for topic_name, partition_ids in wanted:
        results = ReplicaElectionResult(topic=topic_name)
        decision.response.replica_election_results.append(results)
        for partition_id in partition_ids:
            result = PartitionResult(partition_id=partition_id, error_message=None)
            try:
                topic, partition = find_partition(image, topic_name, partition_id)
                _elect(image, decision, topic, partition_id, partition, request.election_type, context)
            except KafkaError as error:
                if everything and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result.error_code = error.code
                result.error_message = error.message or None
            results.partition_result.append(result)
    decision.limit()
    return decision


def _elect(
    image: MetadataImage,
    decision: Decision,
    topic: Topic,
    partition_id: int,
    partition: Partition,
    election_type: int,
    context: Context,
) -> None:
    preferred = election_type == PREFERRED
    already = (topic.topic_id, partition_id) in decision.partition_reasons
    if already or (partition.has_preferred_leader if preferred else partition.leader != NO_LEADER):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    election = Election.PREFERRED if preferred else Election.UNCLEAN
    change = changer(image, context, topic, partition_id, partition, election=election).build()
    wanted = partition.replicas[0] if preferred else None
    if change is None or change.record.leader < 0 or (wanted is not None and change.record.leader != wanted):
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        raise KafkaError(code)
    add_change(decision, change, f"{election.value} election asked for")


def decide_balance(image: MetadataImage, context: Context) -> Decision:
    """Give leaderships back to the first replica of each partition where that is in sync."""
    decision = Decision()
    for topic, partition_id, partition in image.partitions():
        if partition.has_preferred_leader or partition.leader == NO_LEADER:
            continue
        if partition.replicas[0] not in partition.isr:
            continue
        change = changer(image, context, topic, partition_id, partition, election=Election.PREFERRED).build()
        if change is not None and change.record.leader == partition.replicas[0]:
            add_change(decision, change, "leaders are balanced")
        if len(decision.records) >= MAX_ELECTIONS_PER_ROUND:
            break
    return decision


def decide_leaderless(image: MetadataImage, context: Context, cause: str) -> Decision:
    """Elect where nobody leads, uncleanly where that is enabled: after a config change, or in a new controller."""
    decision = Decision()
    places = without_leader(image)
    update_partitions(image, context, decision, cause, places)
    del decision.records[MAX_ELECTIONS_PER_ROUND:]
    return decision
