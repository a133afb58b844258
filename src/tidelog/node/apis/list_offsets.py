"""ListOffsets, versions 1 to 11: the offset at a time, or at one of the named places below.

KIP-79 by timestamp, KIP-98 the last stable offset, KIP-207 an election's stale watermark, KIP-734 the greatest
timestamp, KIP-405 the tiers (all our records are local).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.events import Request
from tidelog.replica.partition import Partition
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.LIST_OFFSETS
VERSIONS = (1, 11)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
OLDEST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
OFFSET_NOT_AVAILABLE_VERSION = 5
READ_COMMITTED = 1
CONSUMER = -1


def handle(node: Node, request: Request) -> ListOffsetsResponse:
    """Each partition by itself."""
    response = ListOffsetsResponse()
    for topic in request.body.topics:
        answers = []
        seen: set[int] = set()
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            answers.append(answer)
            try:
                if wanted.partition_index in seen:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition is named twice")
                seen.add(wanted.partition_index)
                if request.api_version < OLDEST_VERSION_OF.get(wanted.timestamp, 0):
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = node.replicas.find(topic.name, wanted.partition_index)
                partition.check_leader(wanted.current_leader_epoch)
                _look_up(partition, wanted, request, answer)
            except StorageError as error:
                partition = node.replicas.find(topic.name, wanted.partition_index)
                answer.error_code = node.replicas.disk_failed(partition, error).code
            except KafkaError as error:
                answer.error_code = error.code
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return response


def _look_up(
    partition: Partition, wanted: ListOffsetsPartition, request: Request, answer: ListOffsetsPartitionResponse
) -> None:
    log = partition.log
    body = request.body
    end_offset = partition.high_watermark
    if body.replica_id != CONSUMER:
        end_offset = log.log_end_offset
    elif body.isolation_level == READ_COMMITTED:
        end_offset = partition.last_stable_offset
    timestamp = wanted.timestamp
    if timestamp in (EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD):
        answer.offset = log.log_start_offset
        answer.leader_epoch = log.epoch_history.epoch_for_offset(log.log_start_offset)
        return
    if timestamp == LATEST_TIERED:
        return  # nothing is tiered: offset -1, as Kafka answers
    is_stale = body.replica_id == CONSUMER and partition.is_watermark_stale
    if timestamp == LATEST:
        if is_stale:
            raise _stale(request)
        answer.offset = end_offset
        answer.leader_epoch = (
            log.epoch_history.epoch_for_offset(end_offset - 1) if end_offset > 0 else partition.leader_epoch
        )
        return
    found = (
        log.max_timestamp_offset(end_offset)
        if timestamp == MAX_TIMESTAMP
        else log.offset_for_timestamp(timestamp, end_offset)
    )
    if found is not None:
        answer.offset, answer.timestamp, answer.leader_epoch = found
    elif is_stale:
        raise _stale(request)


def _stale(request: Request) -> KafkaError:
    """After an election the watermark may lie before what readers were already given (KIP-207): they must ask again."""
    if request.api_version >= OFFSET_NOT_AVAILABLE_VERSION:
        return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
