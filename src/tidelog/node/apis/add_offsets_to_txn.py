"""AddOffsetsToTxn, versions 0 to 4: a transaction will commit offsets of a group.

The partition of `__consumer_offsets` with the group becomes one of the transaction's, so that it gets a marker.
KIP-588 PRODUCER_FENCED (v2), KIP-890 TRANSACTION_ABORTABLE (v4); producers of transactions v2 do without this request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.coordination.coordinator import partition_for
from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.node.transaction_requests import code_for
from tidelog.transactions.adding import add_partitions
from tidelog.transactions.requests import AddPartitions
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.ADD_OFFSETS_TO_TXN
VERSIONS = (0, 4)
FENCED_VERSION = 2


def handle(node: Node, request: Request) -> None:
    """Answer when the partition is in the transaction; the offsets topic is made on the way where it is missing."""
    body = request.body

    def reply(code: ErrorCode) -> None:
        response = AddOffsetsToTxnResponse(error_code=code_for(code, request, FENCED_VERSION))
        node.outbox.reply(request.connection_id, request.slot, response)

    def ready() -> None:
        partitions = node.group_topics.partitions_of(OFFSETS_TOPIC)
        if not partitions:
            reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        added = frozenset(((OFFSETS_TOPIC, partition_for(body.group_id, partitions)),))
        wanted = AddPartitions(body.transactional_id, body.producer_id, body.producer_epoch, added)
        try:
            add_partitions(node.transactions.state_of(wanted.transactional_id), wanted, reply)
        except KafkaError as error:
            reply(error.code)

    node.internal_topics.ensure(OFFSETS_TOPIC, ready)
