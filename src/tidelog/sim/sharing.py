"""How classic members of a simulated group share out the ledger among themselves, and how they say so.

range                every generation all partitions anew, by turns; members begin with nothing
cooperative-sticky   members keep what they have; what is to move is nobody's for one generation, until whoever had it
                     has given it up and joined again (KIP-429)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.sim.work_shape import LEDGER, LEDGER_PARTITIONS
from tidelog.wire.records.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.wire.records.consumer_protocol_assignment import TopicPartition as Assigned
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.records.consumer_protocol_subscription import TopicPartition as Owned
from tidelog.wire.stored import decode_versioned, encode_versioned

RANGE, COOPERATIVE = "range", "cooperative-sticky"


def subscription_of(owned: Iterable[int], generation: int) -> bytes:
    """What a member says when it joins."""
    partitions = sorted(owned)
    owned_partitions = [Owned(topic=LEDGER, partitions=partitions)] if partitions else []
    return encode_versioned(
        ConsumerProtocolSubscription(topics=[LEDGER], owned_partitions=owned_partitions, generation_id=generation), 2
    )


def claims_of(metadata: Mapping[str, bytes]) -> dict[int, str]:
    """Who says that it has a partition; of two the one of the later generation (KIP-792)."""
    found: dict[int, tuple[int, str]] = {}
    for member_id, data in metadata.items():
        said, _ = decode_versioned(ConsumerProtocolSubscription, data)
        for index in (index for one in said.owned_partitions for index in one.partitions):
            found[index] = max(found.get(index, (-1, "")), (said.generation_id, member_id))
    return {index: member_id for index, (_, member_id) in found.items()}


def encode_share(indexes: Sequence[int]) -> bytes:
    """What a member is given, as its leader says it."""
    return encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic=LEDGER, partitions=list(indexes))]), 1
    )


def decode_share(data: bytes) -> list[int]:
    """What a member was given."""
    if not data:
        return []
    given, _ = decode_versioned(ConsumerProtocolAssignment, data)
    return [index for one in given.assigned_partitions for index in one.partitions]


def share(assignor: str, metadata: Mapping[str, bytes], turn: int) -> dict[str, list[int]]:
    """Every member's part; `turn` decides who comes first where nothing else does."""
    ids = sorted(metadata)
    ids = ids[turn:] + ids[:turn]
    shares: dict[str, list[int]] = {member_id: [] for member_id in ids}
    claims = claims_of(metadata) if assignor == COOPERATIVE else {}
    most = -(-LEDGER_PARTITIONS // len(ids))
    moving = []
    for index in range(LEDGER_PARTITIONS):
        owner = claims.get(index)
        if owner is not None and len(shares[owner]) < most:
            shares[owner].append(index)
        else:
            moving.append(index)
    for index in moving:
        member_id = min(ids, key=lambda one: len(shares[one]))
        shares[member_id].append(index)
    return {
        member_id: [index for index in indexes if claims.get(index, member_id) == member_id]
        for member_id, indexes in shares.items()
    }
