"""InitProducerId, versions 0 to 5: a producer id for an idempotent producer, or for a transactional id.

Ids come from blocks that the controller hands out (KIP-730), so two nodes never give the same one. KIP-98 transactions,
KIP-360 a producer that goes on after an error (v3), KIP-588 PRODUCER_FENCED (v4), KIP-890 TRANSACTION_ABORTABLE (v5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.node.transaction_requests import code_for
from tidelog.transactions.initialise import initialise
from tidelog.transactions.requests import Initialise
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.INIT_PRODUCER_ID
VERSIONS = (0, 5)
FENCED_VERSION = 4


def handle(node: Node, request: Request) -> None:
    """An idempotent producer that asks again starts anew; a transactional one fences whoever had its id before."""
    body = request.body

    def reply(code: ErrorCode, producer_id: int, epoch: int) -> None:
        response = InitProducerIdResponse(
            error_code=code_for(code, request, FENCED_VERSION), producer_id=producer_id, producer_epoch=epoch
        )
        node.outbox.reply(request.connection_id, request.slot, response)

    def given(producer_id: int | None, code: ErrorCode) -> None:
        if producer_id is None:
            reply(code, -1, -1)
        else:
            reply(code, producer_id, 0)

    try:
        if (body.producer_id == -1) != (body.producer_epoch == -1):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and an epoch belong together")
        if body.transactional_id is None:
            node.producer_ids.next(given)
            return
        wanted = Initialise(body.transactional_id, body.transaction_timeout_ms, body.producer_id, body.producer_epoch)
        initialise(node.transactions.state_of(wanted.transactional_id), wanted, reply)
    except KafkaError as error:
        reply(error.code, -1, -1)
