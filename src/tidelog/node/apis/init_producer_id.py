"""InitProducerId, versions 0 to 5: a producer id for an idempotent producer (KIP-98, KIP-360).

Ids come from blocks that the controller hands out (KIP-730), so two nodes never give the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.INIT_PRODUCER_ID
VERSIONS = (0, 5)


def handle(node: Node, request: Request) -> InitProducerIdResponse | None:
    """A fresh id with epoch 0: an idempotent producer that asks again starts anew."""
    body = request.body
    if body.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, producer_epoch=-1)
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)

    def given(producer_id: int | None, code: ErrorCode) -> None:
        response = (
            InitProducerIdResponse(error_code=code, producer_epoch=-1)
            if producer_id is None
            else InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        )
        node.outbox.reply(request.connection_id, request.slot, response)

    node.producer_ids.next(given)
    return None
