"""What producers, and leaders on their behalf, ask the coordinator for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.errors import ErrorCode
from tidelog.transactions.transaction import FIRST_VERSION, NO_EPOCH, NO_PRODUCER_ID, TopicPartition


class Initialise(NamedTuple):
    """A producer wants to use a transactional id."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    """What it has, when it wants to go on after an error (KIP-360)."""
    producer_epoch: int = NO_EPOCH


class AddPartitions(NamedTuple):
    """A producer is about to write to partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = FIRST_VERSION


class End(NamedTuple):
    """A producer commits or aborts."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


ProducerReply = Callable[[ErrorCode, int, int], None]
"""Hears the code, and the producer id and epoch to go on with (-1 twice when there are none)."""
CodeReply = Callable[[ErrorCode], None]
PartitionsReply = Callable[[dict[TopicPartition, ErrorCode]], None]
