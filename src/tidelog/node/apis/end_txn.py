"""EndTxn, versions 0 to 5: commit or abort a transaction.

KIP-588 PRODUCER_FENCED (v2), KIP-890 TRANSACTION_ABORTABLE (v4) and transactions v2 (v5), where the answer carries the
epoch of the next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.node.transaction_requests import code_for
from tidelog.transactions.ending import end
from tidelog.transactions.requests import End
from tidelog.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.end_txn import EndTxnResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.END_TXN
VERSIONS = (0, 5)
FENCED_VERSION = 2
RAISES_EPOCH_VERSION = 5


def handle(node: Node, request: Request) -> None:
    """Answer when the decision is committed."""
    body = request.body

    def reply(code: ErrorCode, producer_id: int, epoch: int) -> None:
        response = EndTxnResponse(
            error_code=code_for(code, request, FENCED_VERSION), producer_id=producer_id, producer_epoch=epoch
        )
        node.outbox.reply(request.connection_id, request.slot, response)

    is_v2 = request.api_version >= RAISES_EPOCH_VERSION
    wanted = End(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        body.committed,
        EPOCH_BUMP_VERSION if is_v2 else FIRST_VERSION,
    )
    try:
        end(node.transactions.state_of(wanted.transactional_id), wanted, reply)
    except KafkaError as error:
        reply(error.code, -1, -1)
