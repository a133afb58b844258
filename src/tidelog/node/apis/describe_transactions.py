"""DescribeTransactions, version 0: transactions as their coordinator knows them (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_TRANSACTIONS
VERSIONS = (0, 0)


def handle(node: Node, request: Request) -> DescribeTransactionsResponse:
    """Each transactional id by itself."""
    found = []
    for transactional_id in dict.fromkeys(request.body.transactional_ids):
        try:
            found.append(_describe(node, transactional_id))
        except KafkaError as error:
            found.append(TransactionState(transactional_id=transactional_id, error_code=error.code))
    return DescribeTransactionsResponse(transaction_states=found)


def _describe(node: Node, transactional_id: str) -> TransactionState:
    transaction = node.transactions.state_of(transactional_id).transactions.get(transactional_id)
    if transaction is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.public_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()],
    )
