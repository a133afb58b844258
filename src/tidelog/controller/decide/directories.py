"""AssignReplicasToDirs 0 (KIP-858): a broker tells in which of its directories each replica lies."""

from __future__ import annotations

from tidelog.controller import levels
from tidelog.controller.decide.decision import Context, Decision, check_broker_epoch
from tidelog.controller.decide.partition_updates import add_change, changer
from tidelog.controller.entities import Broker, is_reserved_directory
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages import assign_replicas_to_dirs as wire
from tidelog.wire.uuids import LOST_DIRECTORY


def decide(image: MetadataImage, request: wire.AssignReplicasToDirsRequest, context: Context) -> Decision:
    """Note directories; each replica answers for itself. A replica in a directory that is offline leaves the ISR."""
    if not levels.has_directories(image.metadata_version):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    decision = Decision(wire.AssignReplicasToDirsResponse())
    for directory in request.directories:
        directory_answer = wire.AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        decision.response.directories.append(directory_answer)
        for topic in directory.topics:
            topic_answer = wire.AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            directory_answer.topics.append(topic_answer)
            for partition in topic.partitions:
                index = partition.partition_index
                code = ErrorCode.NONE
                try:
                    _assign(image, decision, broker, topic.topic_id, index, directory.id, context)
                except KafkaError as error:
                    code = error.code
                topic_answer.partitions.append(
                    wire.AssignReplicasToDirsResponsePartitionData(partition_index=index, error_code=code)
                )
    return decision


def _assign(
    image: MetadataImage,
    decision: Decision,
    broker: Broker,
    topic_id: bytes,
    partition_id: int,
    directory: bytes,
    context: Context,
) -> None:
    topic = image.topics.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(partition_id)
    if partition is None or (topic_id, partition_id) in decision.partition_reasons:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker.broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def alive(other: int) -> bool:
        known = image.brokers.get(other)
        return known is not None and known.active and (online or other != broker.broker_id)

    online = broker.has_online(directory)
    wanted = changer(image, context, topic, partition_id, partition, alive=alive)
    wanted.directories = {broker.broker_id: directory}
    former = partition.directory_of(broker.broker_id)
    if not is_reserved_directory(former) and not broker.has_online(former) and directory != former:
        # It was in one that the broker no longer has: this is another log, which has nothing of what that one had.
        wanted.forget_last_known = broker.broker_id in partition.last_known_elr
    if online:  # as it will be: one whose directory was lost until now may lead from here on
        others = wanted.acceptable
        wanted.acceptable = lambda other: alive(other) if other == broker.broker_id else others(other)
    cause = f"broker {broker.broker_id} told its directory"
    if not online:
        wanted.isr = tuple(replica for replica in partition.isr if replica != broker.broker_id)
        cause += ", which is offline"
    if directory == LOST_DIRECTORY:
        # What the replica had is gone, so it is not eligible either: it may come back with less (KIP-966).
        wanted.unclean_shutdown = (broker.broker_id,)
        cause = f"broker {broker.broker_id} found its replica damaged"
    add_change(decision, wanted.build(), cause)
