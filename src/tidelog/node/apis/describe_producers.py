"""DescribeProducers, version 0: the producers that a partition's leader knows, and what they have open (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import KafkaError
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_PRODUCERS
VERSIONS = (0, 0)


def handle(node: Node, request: Request) -> DescribeProducersResponse:
    """Each partition by itself."""
    response = DescribeProducersResponse()
    for topic in request.body.topics:
        told = TopicResponse(name=topic.name)
        response.topics.append(told)
        for index in topic.partition_indexes:
            answer = PartitionResponse(partition_index=index)
            told.partitions.append(answer)
            try:
                partition = node.replicas.find(topic.name, index)
                partition.check_leader()
            except KafkaError as error:
                answer.error_code = error.code
                answer.error_message = error.message or None
                continue
            answer.active_producers = [
                ProducerState(
                    producer_id=one.producer_id,
                    producer_epoch=one.epoch,
                    last_sequence=one.last_sequence,
                    last_timestamp=one.last_timestamp,
                    coordinator_epoch=one.coordinator_epoch,
                    current_txn_start_offset=one.transaction_first_offset,
                )
                for one in partition.log.producers.producers.values()
            ]
    return response
