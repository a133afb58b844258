"""AlterPartitionReassignments 0-1 and ListPartitionReassignments 0 (KIP-455): replicas move while the partition serves.

First the new replicas are added beside the old ones, which are marked as leaving. When all added ones are in the ISR,
the change that puts the last of them there also removes the leaving ones. Cancelling takes the added ones out again.
"""

from __future__ import annotations

from tidelog.controller.decide.assignments import check_assignment
from tidelog.controller.decide.decision import (
    Context,
    Decision,
    default_directory,
    find_partition,
    unclean_election_enabled,
)
from tidelog.controller.decide.partition_updates import add_change, changer
from tidelog.controller.entities import Partition, Topic
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tidelog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def decide(image: MetadataImage, request: AlterPartitionReassignmentsRequest, context: Context) -> Decision:
    """Begin, change or cancel reassignments; each partition answers for itself."""
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=request.allow_replication_factor_change
    )
    decision = Decision(response)
    for wanted_topic in request.topics:
        answer = ReassignableTopicResponse(name=wanted_topic.name)
        response.responses.append(answer)
        for wanted in wanted_topic.partitions:
            result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            answer.partitions.append(result)
            try:
                topic, partition = find_partition(image, wanted_topic.name, wanted.partition_index)
                if (topic.topic_id, wanted.partition_index) in decision.partition_reasons:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition is named more than once.")
                if wanted.replicas is None:
                    _cancel(image, decision, topic, wanted.partition_index, partition, context)
                else:
                    factor_may_change = request.allow_replication_factor_change
                    _check_target(image, partition, wanted.replicas, factor_may_change)
                    _begin(image, decision, topic, wanted.partition_index, partition, wanted.replicas, context)
            except KafkaError as error:
                result.error_code = error.code
                result.error_message = error.message or None
    decision.limit()
    return decision


def _check_target(image: MetadataImage, partition: Partition, target: list[int], factor_may_change: bool) -> None:
    check_assignment(image, target, None)
    present = len([replica for replica in partition.replicas if replica not in partition.adding_replicas])
    if not factor_may_change and len(target) != present:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {present} to {len(target)}",
        )


def _begin(
    image: MetadataImage,
    decision: Decision,
    topic: Topic,
    partition_id: int,
    partition: Partition,
    target: list[int],
    context: Context,
) -> None:
    """Where all targets are in sync already, the same record completes it."""
    # Replicas that a reassignment under way was adding are still not what the partition stands on.
    adding = sorted(
        replica for replica in target if replica not in partition.replicas or replica in partition.adding_replicas
    )
    removing = sorted(replica for replica in partition.replicas if replica not in target)
    wanted = changer(image, context, topic, partition_id, partition)
    wanted.replicas = [*target, *removing]
    wanted.adding = adding
    wanted.removing = removing
    wanted.directories = {
        replica: default_directory(image, replica) for replica in adding if replica not in partition.replicas
    }
    add_change(decision, wanted.build(), f"reassigned to {', '.join(map(str, target))}")


def _cancel(
    image: MetadataImage, decision: Decision, topic: Topic, partition_id: int, partition: Partition, context: Context
) -> None:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    adding = partition.adding_replicas
    replicas = [replica for replica in partition.replicas if replica not in adding]
    isr = [replica for replica in partition.isr if replica not in adding]
    # Who has all that is committed, as far as is known: with nobody in sync, those who may lead when they are back.
    trusted = partition.isr or partition.eligible_leader_replicas or partition.last_known_elr
    is_lost = bool(trusted) and all(replica in adding for replica in trusted)
    if is_lost and not unclean_election_enabled(image, context, topic.name):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{partition_id} because it would require an "
            "unclean leader election.",
        )
    wanted = changer(image, context, topic, partition_id, partition)
    wanted.replicas = replicas
    wanted.isr = isr
    wanted.adding = wanted.removing = ()
    add_change(decision, wanted.build(), "reassignment cancelled")


def decide_list(image: MetadataImage, request: ListPartitionReassignmentsRequest, context: Context) -> Decision:
    """What is under way, of the partitions named or of all."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    if request.topics is None:
        wanted = [(topic, sorted(topic.partitions)) for topic in image.topics.values()]
    else:
        wanted = [
            (topic, each.partition_indexes) for each in request.topics if (topic := image.topic(each.name)) is not None
        ]
    for topic, partition_ids in wanted:
        ongoing = OngoingTopicReassignment(name=topic.name)
        for partition_id in partition_ids:
            partition = topic.partitions.get(partition_id)
            if partition is None or not partition.is_reassigning:
                continue
            ongoing.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=partition_id,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding_replicas),
                    removing_replicas=list(partition.removing_replicas),
                )
            )
        if ongoing.partitions:
            response.topics.append(ongoing)
    return Decision(response)
