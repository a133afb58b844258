"""DeleteTopics 1-6: by name, and since v6 by id (KIP-516). The brokers delete the files when they see the record."""

from __future__ import annotations

from collections import Counter

from tidelog.controller.decide.decision import Context, Decision
from tidelog.controller.entities import Topic
from tidelog.controller.image import MetadataImage
from tidelog.controller.records import RemoveTopicRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from tidelog.wire.uuids import ZERO_UUID

Target = tuple[str | None, bytes]


def decide(image: MetadataImage, request: DeleteTopicsRequest, context: Context) -> Decision:
    """Delete topics; each answers for itself."""
    if not context.config.delete_topic_enable:
        disabled = ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        raise KafkaError(disabled, "Topic deletion is disabled.")
    decision = Decision(DeleteTopicsResponse())
    targets: list[Target] = [(name, ZERO_UUID) for name in request.topic_names]
    targets += [(topic.name, topic.topic_id) for topic in request.topics]
    counts = Counter(targets)
    meant = Counter(topic.topic_id for target in counts if (topic := _find(image, target)) is not None)
    for target in dict.fromkeys(targets):
        name, topic_id = target
        try:
            topic = _check(image, target, counts[target], meant)
            decision.add(RemoveTopicRecord(topic_id=topic.topic_id))
            result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        except KafkaError as error:
            result = DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message or None
            )
        decision.response.responses.append(result)
    decision.limit()
    return decision


def _find(image: MetadataImage, target: Target) -> Topic | None:
    name, topic_id = target
    return image.topics.get(topic_id) if name is None else image.topic(name)


def _check(image: MetadataImage, target: Target, times: int, meant: Counter[bytes]) -> Topic:
    name, topic_id = target
    if name is None and topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic id." if name is None else "Duplicate topic name.")
    topic = _find(image, target)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(code, "This server does not host this topic ID." if name is None else "")
    if meant[topic.topic_id] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
    return topic
