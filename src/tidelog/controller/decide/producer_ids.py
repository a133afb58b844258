"""AllocateProducerIds 0 (KIP-730): each broker gets blocks of its own, and no id is ever given twice."""

from __future__ import annotations

from tidelog.controller.decide.decision import Context, Decision, check_broker_epoch
from tidelog.controller.image import MetadataImage
from tidelog.controller.records import ProducerIdsRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

BLOCK_SIZE = 1_000
_LARGEST = (1 << 63) - 1


def decide(image: MetadataImage, request: AllocateProducerIdsRequest, context: Context) -> Decision:
    """Give the next block."""
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    start = max(image.next_producer_id, 0)
    if start > _LARGEST - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producerIds as the next block's end is too large."
        )
    decision = Decision(AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE))
    decision.add(
        ProducerIdsRecord(
            broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
        )
    )
    return decision
