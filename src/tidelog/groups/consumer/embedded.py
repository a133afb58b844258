"""What consumers of the classic protocol say inside of it: subscriptions and assignments, each with its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.errors import DecodeError
from tidelog.groups.consumer.member import Assignment
from tidelog.groups.topics import Topics
from tidelog.wire.codec import decode
from tidelog.wire.records.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.stored import encode_versioned

NEWEST_VERSION = 3


class Subscription(NamedTuple):
    """What a consumer wants, and what it says that it has."""

    topics: tuple[str, ...]
    owned: dict[str, frozenset[int]]
    rack_id: str | None
    generation: int
    """Whose share `owned` is; -1 where it does not say (KIP-792)."""


def version_of(data: bytes) -> int:
    """The version before a message, held to those known here; a later one begins as the newest known."""
    if len(data) < 2:
        raise DecodeError("a consumer's metadata without a version")
    return max(0, min(int.from_bytes(data[:2], "big", signed=True), NEWEST_VERSION))


def assignment_version(protocols: Iterable[tuple[str, bytes]]) -> int:
    """The version that a member reads, by its own metadata; one that it alone has may be of any form."""
    return next((version_of(data) for _, data in protocols if len(data) >= 2), 0)


def read_subscription(data: bytes) -> Subscription:
    """Raises DecodeError on anything that is not one."""
    message, _ = decode(ConsumerProtocolSubscription, version_of(data), data, 2)
    owned = {one.topic: frozenset(one.partitions) for one in message.owned_partitions if one.partitions}
    return Subscription(tuple(sorted(set(message.topics))), owned, message.rack_id, message.generation_id)


def read_assignment(data: bytes, topics: Topics) -> dict[bytes, frozenset[int]]:
    """By topic id; topics that are gone are left out. Raises DecodeError on anything that is not one."""
    if not data:
        return {}
    message, _ = decode(ConsumerProtocolAssignment, version_of(data), data, 2)
    return by_id({one.topic: frozenset(one.partitions) for one in message.assigned_partitions}, topics)


def write_assignment(assignment: Assignment, topics: Topics, version: int) -> bytes:
    """In the version that the member's own metadata has."""
    rows = [
        TopicPartition(topic=name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if (name := topics.name_of(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=sorted(rows, key=lambda row: row.topic))
    return encode_versioned(message, version)


def by_id(named: Mapping[str, frozenset[int]], topics: Topics) -> dict[bytes, frozenset[int]]:
    """An assignment by topic ids, without topics that are gone."""
    return {
        topic_id: partitions
        for name, partitions in named.items()
        if partitions and (topic_id := topics.id_of(name)) is not None
    }
