"""ListTransactions, versions 0 to 2: the transactional ids this node looks after (KIP-664).

By state and producer id, by how long they are open (KIP-994, v1), by a pattern of the id (KIP-1152, v2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.consumer.topic_pattern import TopicPattern
from tidelog.transactions.transaction import State, Transaction
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.list_transactions import ListTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.LIST_TRANSACTIONS
VERSIONS = (0, 2)
_NEVER_SHOWN = frozenset(("Dead", "PrepareEpochFence"))
"""States that Kafka knows and that last no longer than a step here."""


def handle(node: Node, request: Request) -> ListTransactionsResponse:
    """What matches every filter; where a shard is still being read, the code says that it may not be all."""
    body = request.body
    response = ListTransactionsResponse()
    if node.transactions.is_loading:
        response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return response
    names = {state.public_name: state for state in State}
    states = {names[name] for name in body.state_filters if name in names}
    response.unknown_state_filters = [
        name for name in body.state_filters if name not in names and name not in _NEVER_SHOWN
    ]
    try:
        # Matched without going back, as RE2 does: no expression holds the node up.
        pattern = TopicPattern(body.transactional_id_pattern) if body.transactional_id_pattern else None
    except KafkaError as error:
        response.error_code = error.code
        return response
    producer_ids = set(body.producer_id_filters)
    now_ms = node.outbox.now_ms

    def matches(one: Transaction) -> bool:
        return (
            (not body.state_filters or one.state in states)
            and (not producer_ids or one.producer_id in producer_ids)
            and (body.duration_filter < 0 or (one.start_ms >= 0 and now_ms - one.start_ms > body.duration_filter))
            and (pattern is None or pattern.matches(one.transactional_id))
        )

    for state in node.transactions.states():
        for one in state.transactions.values():
            if matches(one):
                response.transaction_states.append(
                    TransactionState(
                        transactional_id=one.transactional_id,
                        producer_id=one.producer_id,
                        transaction_state=one.state.public_name,
                    )
                )
    return response
