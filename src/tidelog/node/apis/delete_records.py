"""DeleteRecords, versions 0 to 2: forget everything below an offset; -1 means the high watermark (KIP-107)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.events import Request
from tidelog.replica.partition import Partition
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DELETE_RECORDS
VERSIONS = (0, 2)
HIGH_WATERMARK = -1


def handle(node: Node, request: Request) -> DeleteRecordsResponse:
    """Each partition by itself."""
    response = DeleteRecordsResponse()
    for topic in request.body.topics:
        answers = []
        for wanted in topic.partitions:
            answer = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
            answers.append(answer)
            try:
                partition = node.replicas.find(topic.name, wanted.partition_index)
                answer.low_watermark = _delete(node, partition, wanted.offset)
            except KafkaError as error:
                answer.error_code = error.code
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return response


def _delete(node: Node, partition: Partition, offset: int) -> int:
    partition.check_leader()
    if not partition.config.is_deleted_by_retention:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{partition} is compacted: its records are not deleted by offset")
    offset = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= offset <= partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        if offset > partition.log.log_start_offset:
            partition.raise_log_start(offset)
            # Nothing beyond what was asked for: records that are old enough to go are the retention's, at its own time.
            doomed = partition.log.delete_old_segments(node.outbox.now_ms, offset)
            if doomed:
                node.replicas.delete_later(partition, doomed)
    except StorageError as error:
        raise node.replicas.disk_failed(partition, error) from None
    return partition.log.log_start_offset
