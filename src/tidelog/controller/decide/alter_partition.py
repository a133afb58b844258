"""AlterPartition 2-3 (KIP-497, KIP-704, KIP-841): a leader proposes another ISR; the controller decides.

v3 names each member's broker epoch, so that a replica that has restarted since is not let in (KIP-903). An answer
without an error carries the state that was decided, which is what was asked for.
"""

from __future__ import annotations

from tidelog.controller.decide.decision import Context, Decision, check_broker_epoch
from tidelog.controller.decide.partition_updates import add_change, changer
from tidelog.controller.entities import LEADER_UNCHANGED, RECOVERED, RECOVERING, Partition, Topic
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages import alter_partition as wire

MAX_REASON_CHARACTERS = 300
"""Of what a leader says about its proposal: it is for people, and in no record."""


def decide(image: MetadataImage, request: wire.AlterPartitionRequest, context: Context) -> Decision:
    """Change ISRs; each partition answers for itself."""
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    decision = Decision(wire.AlterPartitionResponse())
    for topic_data in request.topics:
        answer = wire.AlterPartitionResponseTopicData(topic_id=topic_data.topic_id)
        decision.response.topics.append(answer)
        topic = image.topics.get(topic_data.topic_id)
        for data in topic_data.partitions:
            try:
                if topic is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                partition = _alter(image, decision, topic, data, request.broker_id, context)
            except KafkaError as error:
                answer.partitions.append(_answer(data.partition_index, error.code, None))
            else:
                answer.partitions.append(_answer(data.partition_index, ErrorCode.NONE, partition))
    return decision


def _alter(
    image: MetadataImage,
    decision: Decision,
    topic: Topic,
    data: wire.AlterPartitionRequestPartitionData,
    broker_id: int,
    context: Context,
) -> Partition:
    partition_id = data.partition_index
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    members = _members(data, context.api_version)
    _check_epochs(partition, data, broker_id)
    _check_isr(partition, data, [member for member, _ in members])
    _check_members(image, partition, members)
    if (topic.topic_id, partition_id) in decision.partition_reasons:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A partition is named more than once.")
    wanted = changer(image, context, topic, partition_id, partition)
    wanted.isr = tuple(member for member, _ in members)
    wanted.leader_recovery_state = data.leader_recovery_state
    change = wanted.build()
    if change is None:
        return partition
    add_change(decision, change, data.reason[:MAX_REASON_CHARACTERS] or f"proposed by leader {broker_id}")
    if change.record.leader not in (broker_id, LEADER_UNCHANGED):
        # The new ISR completed a reassignment that took the leadership away: decided, and told as an error.
        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
    return partition.merged(change.record)


def _members(data: wire.AlterPartitionRequestPartitionData, api_version: int) -> list[tuple[int, int]]:
    """Broker and broker epoch; -1 where the version does not tell it, or the leader does not know it."""
    if api_version < 3:
        return [(broker_id, -1) for broker_id in data.new_isr]
    return [(state.broker_id, state.broker_epoch) for state in data.new_isr_with_epochs]


def _check_epochs(partition: Partition, data: wire.AlterPartitionRequestPartitionData, broker_id: int) -> None:
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        # The leader knows more than this controller, which is probably not the active one any more.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if data.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if data.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(partition: Partition, data: wire.AlterPartitionRequestPartitionData, isr: list[int]) -> None:
    unknown = any(member not in partition.replicas for member in isr)
    if unknown or len(set(isr)) != len(isr) or partition.leader not in isr:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    state = data.leader_recovery_state
    if state not in (RECOVERED, RECOVERING) or (state == RECOVERING and len(isr) > 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if state == RECOVERING and partition.leader_recovery_state == RECOVERED:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _check_members(image: MetadataImage, partition: Partition, members: list[tuple[int, int]]) -> None:
    """A member must be alive, staying, and in the life that the leader saw catching up (KIP-903).

    One that joins must have its directory: what the leader remembers of a lost replica is not what it has now.
    """
    for broker_id, broker_epoch in members:
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.active or broker_epoch not in (-1, broker.epoch):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
        if broker_id not in partition.isr and not broker.has_online(partition.directory_of(broker_id)):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)


def _answer(
    partition_index: int, code: ErrorCode, partition: Partition | None
) -> wire.AlterPartitionResponsePartitionData:
    answer = wire.AlterPartitionResponsePartitionData(partition_index=partition_index, error_code=code)
    if partition is not None:
        answer.leader_id = partition.leader
        answer.leader_epoch = partition.leader_epoch
        answer.isr = list(partition.isr)
        answer.leader_recovery_state = partition.leader_recovery_state
        answer.partition_epoch = partition.partition_epoch
    return answer
