"""DescribeLogDirs, versions 1 to 5: the log directories with their sizes (KIP-113, KIP-827 the volume's bytes).

Version 5 tells which are cordoned (KIP-1066): none, as nothing here can cordon one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, StorageError
from tidelog.events import Request
from tidelog.replica.directory import LogDirectory
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_LOG_DIRS
VERSIONS = (1, 5)


def handle(node: Node, request: Request) -> DescribeLogDirsResponse:
    """Every directory, with the wanted partitions in it (all, when none are named)."""
    wanted = (
        None
        if request.body.topics is None
        else {(topic.topic, index) for topic in request.body.topics for index in topic.partitions}
    )
    return DescribeLogDirsResponse(results=[_describe(node, one, wanted) for one in node.replicas.directories])


def _describe(node: Node, directory: LogDirectory, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
    if not directory.online:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.storage.root)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for (name, index), partition in node.replicas.partitions.items():
        if partition.directory_id != directory.directory_id or (wanted is not None and (name, index) not in wanted):
            continue
        topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=partition.log.size_bytes,
                offset_lag=max(0, partition.high_watermark - partition.log.log_end_offset),
            )
        )
    try:
        total_bytes, usable_bytes = directory.storage.usage()
    except StorageError:
        total_bytes, usable_bytes = -1, -1
    return DescribeLogDirsResult(
        log_dir=directory.storage.root,
        topics=list(topics.values()),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
