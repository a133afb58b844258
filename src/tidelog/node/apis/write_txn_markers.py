"""WriteTxnMarkers, versions 1 and 2: the coordinator's decision, written into a transaction's partitions.

Coordinators send it, and tools that abort a transaction nobody will end. Each partition is answered when its marker is
committed. KIP-98; version 2 tells which transaction protocol ended it, for the stricter check of epochs (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.coordination.shard import ShardStatus
from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.events import Request
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.replica.partition import Partition
from tidelog.wire.api_table import ApiKey
from tidelog.wire.control import build_end_marker
from tidelog.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.WRITE_TXN_MARKERS
VERSIONS = (1, 2)


def handle(node: Node, request: Request) -> WriteTxnMarkersResponse | None:
    """Append what can be appended; answer when the last of it is committed."""
    response = WriteTxnMarkersResponse()
    remaining = 1

    def one_done() -> None:
        nonlocal remaining
        remaining -= 1
        if not remaining:
            node.outbox.reply(request.connection_id, request.slot, response)

    for marker in request.body.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        response.markers.append(result)
        for topic in marker.topics:
            told = WritableTxnMarkerTopicResult(name=topic.name)
            result.topics.append(told)
            for index in topic.partition_indexes:
                answer = WritableTxnMarkerPartitionResult(partition_index=index)
                told.partitions.append(answer)
                remaining += 1
                _write(node, marker, topic.name, answer, one_done)
    one_done()
    return None


def _write(node: Node, marker: Any, topic: str, answer: WritableTxnMarkerPartitionResult, done: Any) -> None:
    """Write one marker."""

    def committed(code: ErrorCode) -> None:
        answer.error_code = code
        done()

    try:
        partition = node.replicas.find(topic, answer.partition_index)
        _append(node, partition, marker)
    except KafkaError as error:
        committed(error.code)
        return
    partition.when_committed(partition.log.log_end_offset, committed)


def _append(node: Node, partition: Partition, marker: Any) -> None:
    partition.check_leader()
    partition.check_enough_replicas()
    now_ms = node.outbox.now_ms
    data = memoryview(
        bytearray(
            build_end_marker(
                commit=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                timestamp=now_ms,
            )
        )
    )
    try:
        partition.append_marker(data, now_ms, marker.transaction_version)
    except StorageError as error:
        raise node.replicas.disk_failed(partition, error) from None
    node.verification.marker_written(partition.topic, partition.index, marker.producer_id, marker.producer_epoch)
    if partition.topic == OFFSETS_TOPIC:
        # A shard that is still being read will come upon the marker itself.
        shard = node.groups.coordinator.shards.get(partition.index)
        if shard is not None and shard.status is ShardStatus.ACTIVE:
            shard.state.replay_end_marker(marker.producer_id, marker.producer_epoch, marker.transaction_result)
    node.replicas.appended(partition, len(data))
