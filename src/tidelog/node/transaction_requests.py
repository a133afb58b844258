"""What requests about transactions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.transactions.transaction import TopicPartition

if TYPE_CHECKING:
    from tidelog.node.node import Node


def code_for(code: ErrorCode, request: Request, fenced_version: int) -> ErrorCode:
    """The code as a client of this version knows it: before KIP-588 a fenced producer had another."""
    if code is ErrorCode.PRODUCER_FENCED and request.api_version < fenced_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def missing_partitions(node: Node, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
    """Those that are not in the cluster."""
    return frozenset(
        (topic, index) for topic, index in partitions if not 0 <= index < node.group_topics.partitions_of(topic)
    )
