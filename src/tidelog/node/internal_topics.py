"""The topics that coordinators keep their state in: made when somebody first asks for a coordinator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.transactions.service import TOPIC as TRANSACTIONS_TOPIC
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from tidelog.node.node import Node

CREATE_TOPICS_VERSION = 7
MAX_WAITING = 10_000
"""Requests that may wait for a topic to be made; a further one is told to try again."""


class InternalTopics:
    """Makes each topic once, however many ask for it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._told: dict[str, str] = {}
        """Why each could not be made, as last told."""

    def ensure(self, topic: str, then: Callable[[], None]) -> None:
        """Call back when the topic is there, or when it could not be made now."""
        if self._node.image.topic(topic) is not None:
            then()
            return
        waiting = self._waiting.get(topic)
        if waiting is not None:
            if len(waiting) < MAX_WAITING:
                waiting.append(then)
            else:
                then()
            return
        self._waiting[topic] = [then]
        request = CreateTopicsRequest(topics=[self._wanted(topic)], timeout_ms=self._node.config.request_timeout_ms)
        self._node.link.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request, partial(self._made, topic))

    def _made(self, topic: str, answer: Any, failure: str | None) -> None:
        code = ErrorCode.NONE if answer is None else ErrorCode(answer.topics[0].error_code)
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._tell(topic, f"{code.name}: {answer.topics[0].error_message or ''}")
        elif failure is not None:
            self._tell(topic, failure)
        for then in self._waiting.pop(topic, ()):
            then()

    def _tell(self, topic: str, reason: str) -> None:
        """Clients only hear that there is no coordinator, and ask again and again: whoever looks here is told why."""
        if self._told.get(topic) != reason:
            self._told[topic] = reason
            self._node.outbox.tell("internal-topic-not-made", "warning", topic=topic, reason=reason)

    def _wanted(self, topic: str) -> Any:
        config = self._node.config
        partitions, replication_factor, segment_bytes, more = {
            OFFSETS_TOPIC: (
                config.offsets_topic_num_partitions,
                config.offsets_topic_replication_factor,
                config.offsets_topic_segment_bytes,
                {"compression.type": "producer"},
            ),
            TRANSACTIONS_TOPIC: (
                config.transaction_state_log_num_partitions,
                config.transaction_state_log_replication_factor,
                config.transaction_state_log_segment_bytes,
                {
                    "compression.type": "uncompressed",
                    "min.insync.replicas": str(config.transaction_state_log_min_isr),
                    "unclean.leader.election.enable": "false",
                },
            ),
        }[topic]
        # A small cluster gets as many replicas as it has brokers, where Kafka would make nobody's topic.
        living = sum(not broker.fenced for broker in self._node.image.brokers.values())
        return CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=max(1, min(replication_factor, living)),
            configs=[
                CreatableTopicConfig(name="cleanup.policy", value="compact"),
                CreatableTopicConfig(name="segment.bytes", value=str(segment_bytes)),
                *(CreatableTopicConfig(name=name, value=value) for name, value in more.items()),
            ],
        )
