"""CreateTopics 2-7: all checks of Kafka, topic by topic; what is sound is made, together, in one batch.

v5 answers with the topic's settings (KIP-525), v7 with its id (KIP-516).
"""

from __future__ import annotations

from collections import Counter

from tidelog.config import BrokerValues, describe_topic, validate_topic_overrides
from tidelog.controller import levels
from tidelog.controller.decide.assignments import check_assignment, new_partition
from tidelog.controller.decide.decision import Context, Decision
from tidelog.controller.decide.placement import Placer
from tidelog.controller.decide.topic_names import METADATA_TOPIC, Collisions, check_name
from tidelog.controller.entities import Partition
from tidelog.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from tidelog.controller.records import ConfigRecord, TopicRecord, VersionedRecord
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

MAX_CONFIG_LENGTH = 32_767
"""Of one setting's text, as in Kafka: it must fit a record's string."""


def decide(image: MetadataImage, request: CreateTopicsRequest, context: Context) -> Decision:
    """Make topics; each answers for itself, and one that fails does not hold the others up."""
    decision = Decision(CreateTopicsResponse())
    collisions = Collisions(image.topic_ids)
    counts = Counter(topic.name for topic in request.topics)
    placer = Placer(image, context.chance)
    answered: set[str] = set()
    for topic in request.topics:
        if topic.name in answered:
            continue
        answered.add(topic.name)
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records, result = _create(image, topic, context, collisions, placer)
        except KafkaError as error:
            result = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message or None, configs=None
            )
        else:
            decision.records.extend(records)
            collisions.add(topic.name)
        decision.response.topics.append(result)
    if request.validate_only:
        decision.records.clear()
    decision.limit()
    return decision


def _create(
    image: MetadataImage, topic: CreatableTopic, context: Context, collisions: Collisions, placer: Placer
) -> tuple[list[VersionedRecord], CreatableTopicResult]:
    _check_name(image, topic.name, collisions)
    configs = _configs(topic)
    partitions = _by_hand(image, topic) if topic.assignments else _placed(image, topic, context, placer)
    topic_id = context.chance.uuid()
    while topic_id in image.topics:
        topic_id = context.chance.uuid()
    version = levels.partition_version(image.metadata_version)
    records: list[VersionedRecord] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0)]
    for name, value in configs.items():
        records.append(
            (ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value), 0)
        )
    for partition_id, partition in enumerate(partitions):
        records.append((partition.to_record(topic_id, partition_id), version))
    return records, _result(image, topic.name, topic_id, partitions, configs, context)


def _check_name(image: MetadataImage, name: str, collisions: Collisions) -> None:
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{name} is kept by the quorum.")
    if name in image.topic_ids:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_name(name)
    collisions.check(name)


def _configs(topic: CreatableTopic) -> dict[str, str]:
    without_value = [each.name for each in topic.configs if each.value is None]
    if without_value:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "Null value not supported for topic configs: " + ",".join(without_value)
        )
    configs = {each.name: each.value for each in topic.configs if each.value is not None}
    if any(len(value) > MAX_CONFIG_LENGTH for value in configs.values()):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"The configuration value cannot be longer than {MAX_CONFIG_LENGTH} characters."
        )
    try:
        validate_topic_overrides(configs)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return configs


def _by_hand(image: MetadataImage, topic: CreatableTopic) -> list[Partition]:
    """Replicas as the request lists them."""
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    found: dict[int, Partition] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, assignment.broker_ids
        if index in found:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(image, replicas, replication_factor)
        replication_factor = len(replicas)
        partition = new_partition(image, replicas)
        if partition is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown.",
            )
        found[index] = partition
    if sorted(found) != list(range(len(found))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [found[index] for index in range(len(found))]


def _placed(image: MetadataImage, topic: CreatableTopic, context: Context, placer: Placer) -> list[Partition]:
    """Replicas where the placer wants them."""
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    config = context.config
    count = config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = config.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    return place(image, placer, count, factor)


def place(image: MetadataImage, placer: Placer, count: int, replication_factor: int) -> list[Partition]:
    """New partitions of one topic where the placer wants them, or INVALID_REPLICATION_FACTOR."""
    unable = f"Unable to replicate the partition {replication_factor} time(s): "
    if count > _MAX_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    try:
        rows = placer.place(count, replication_factor)
    except KafkaError as error:
        raise KafkaError(error.code, unable + error.message) from None
    partitions = []
    for row in rows:
        partition = new_partition(image, row)
        if partition is None:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                unable + "All brokers are currently fenced or in controlled shutdown.",
            )
        partitions.append(partition)
    return partitions


_MAX_PARTITIONS = 10_000


def _result(
    image: MetadataImage,
    name: str,
    topic_id: bytes,
    partitions: list[Partition],
    configs: dict[str, str],
    context: Context,
) -> CreatableTopicResult:
    result = CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
    )
    if context.api_version < 5:
        return result
    own, cluster = image.config(BROKER_RESOURCE, str(context.node_id)), image.config(BROKER_RESOURCE, "")
    broker = BrokerValues(context.config, own, cluster)
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(configs, broker)
    ]
    return result
