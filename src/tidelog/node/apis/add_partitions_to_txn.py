"""AddPartitionsToTxn, versions 0 to 5: a transaction reaches further partitions.

Versions 0 to 3 come from producers of transactions v1. From version 4 on leaders ask, for several transactions at once:
to verify that a partition is in the transaction, or, for producers of transactions v2, to add it (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.node.transaction_requests import code_for, missing_partitions
from tidelog.transactions.adding import add_partitions, verify_partitions
from tidelog.transactions.requests import AddPartitions, PartitionsReply
from tidelog.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.ADD_PARTITIONS_TO_TXN
VERSIONS = (0, 5)
FENCED_VERSION = 2
BATCHED_VERSION = 4
FOR_V2_VERSION = 5
"""From here on, what a leader adds is a producer's of transactions v2."""

Codes = dict[tuple[str, int], ErrorCode]


def handle(node: Node, request: Request) -> AddPartitionsToTxnResponse | None:
    """Answer when every transaction named is decided upon."""
    body = request.body
    if request.api_version < BATCHED_VERSION:
        one = AddPartitions(
            body.v3_and_below_transactional_id,
            body.v3_and_below_producer_id,
            body.v3_and_below_producer_epoch,
            _partitions(body.v3_and_below_topics),
        )

        def added(codes: Codes) -> None:
            topics = _results(body.v3_and_below_topics, codes, request)
            response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
            node.outbox.reply(request.connection_id, request.slot, response)

        _add(node, one, False, added, None)
        return None
    response = AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=one.transactional_id) for one in body.transactions
        ]
    )
    remaining = len(body.transactions)
    if not remaining:
        return response

    def one_done(result: AddPartitionsToTxnResult, topics: Any) -> PartitionsReply:
        def done(codes: Codes) -> None:
            nonlocal remaining
            result.topic_results = _results(topics, codes, request)
            remaining -= 1
            if not remaining:
                node.outbox.reply(request.connection_id, request.slot, response)

        return done

    for wanted, result in zip(body.transactions, response.results_by_transaction, strict=True):
        one = AddPartitions(
            wanted.transactional_id,
            wanted.producer_id,
            wanted.producer_epoch,
            _partitions(wanted.topics),
            EPOCH_BUMP_VERSION if request.api_version >= FOR_V2_VERSION else FIRST_VERSION,
        )
        wait_ms = node.config.add_partitions_to_txn_retry_backoff_ms
        _add(node, one, wanted.verify_only, one_done(result, wanted.topics), wait_ms)
    return None


def _add(node: Node, wanted: AddPartitions, verify_only: bool, reply: PartitionsReply, wait_ms: int | None) -> None:
    """One transaction; all of its partitions are added, or none is."""

    def all_the_same(code: ErrorCode) -> None:
        reply(dict.fromkeys(wanted.partitions, code))

    missing = missing_partitions(node, wanted.partitions)
    if missing:
        reply(
            {
                one: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if one in missing else ErrorCode.OPERATION_NOT_ATTEMPTED
                for one in wanted.partitions
            }
        )
        return
    try:
        state = node.transactions.state_of(wanted.transactional_id)
        if verify_only:
            verify_partitions(state, wanted, reply)
        else:
            add_partitions(state, wanted, all_the_same, wait_ms=wait_ms)
    except KafkaError as error:
        all_the_same(error.code)


def _partitions(topics: Any) -> frozenset[tuple[str, int]]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def _results(topics: Any, codes: Codes, request: Request) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=code_for(codes[topic.name, index], request, FENCED_VERSION),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
