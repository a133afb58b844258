"""CreatePartitions 0-3: more partitions for a topic, never fewer. Records stay where they are; keys may move."""

from __future__ import annotations

from collections import Counter

from tidelog.controller import levels
from tidelog.controller.decide.assignments import check_assignment, new_partition
from tidelog.controller.decide.create_topics import place
from tidelog.controller.decide.decision import Context, Decision
from tidelog.controller.decide.placement import Placer
from tidelog.controller.entities import Partition, Topic
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def decide(image: MetadataImage, request: CreatePartitionsRequest, context: Context) -> Decision:
    """Add partitions; each topic answers for itself."""
    decision = Decision(CreatePartitionsResponse())
    counts = Counter(topic.name for topic in request.topics)
    version = levels.partition_version(image.metadata_version)
    placer = Placer(image, context.chance)
    for name in dict.fromkeys(topic.name for topic in request.topics):
        wanted = next(topic for topic in request.topics if topic.name == name)
        try:
            if counts[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = image.topic(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
            first = len(topic.partitions)
            for partition_id, partition in enumerate(_added(image, topic, wanted, placer), first):
                decision.add(partition.to_record(topic.topic_id, partition_id), version)
        except KafkaError as error:
            result = CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message or None)
        else:
            result = CreatePartitionsTopicResult(name=name)
        decision.response.results.append(result)
    if request.validate_only:
        decision.records.clear()
    decision.limit()
    return decision


def _added(image: MetadataImage, topic: Topic, wanted: CreatePartitionsTopic, placer: Placer) -> list[Partition]:
    present = len(topic.partitions)
    if wanted.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} would not be an increase.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    additional = wanted.count - present
    if wanted.assignments is None:
        return place(image, placer, additional, replication_factor)
    if len(wanted.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified.",
        )
    added = []
    for index, assignment in enumerate(wanted.assignments, present):
        check_assignment(image, assignment.broker_ids, replication_factor)
        partition = new_partition(image, assignment.broker_ids)
        if partition is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown.",
            )
        added.append(partition)
    return added
