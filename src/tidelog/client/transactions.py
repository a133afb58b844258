"""Transactions as a tool sees them: list, describe, abort, and find those that nobody will end.

Each raises the KafkaError it was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, raise_for
from tidelog.client.client import Client, TopicPartition
from tidelog.client.coordinators import MOVING, TRANSACTION, ask_coordinator
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidelog.wire.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.list_transactions import ListTransactionsRequest
from tidelog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

OPEN_STATES = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort"))
"""In these a coordinator still has to write markers, or will be told to."""
FENCING_TIMEOUT_MS = 60_000
"""A transaction timeout, for a producer that only fences another."""
_BUSY = (ErrorCode.CONCURRENT_TRANSACTIONS,)
"""The coordinator is still ending the last one."""


class TransactionListing(NamedTuple):
    """One line of a list."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


class TransactionView(NamedTuple):
    """A transactional id as its coordinator knows it."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    """-1 when nothing was begun."""
    coordinator: int
    partitions: list[TopicPartition]


class OpenTransaction(NamedTuple):
    """A transaction that is open in one partition, as that partition's leader knows it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


class Filters(NamedTuple):
    """Which transactions a list names; all of them must hold."""

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    min_duration_ms: int = -1
    pattern: str | None = None


def list_transactions(client: Client, filters: Filters | None = None) -> list[TransactionListing]:
    """Every transactional id of the cluster that matches: each broker knows those it looks after."""
    filters = filters or Filters()
    request = ListTransactionsRequest(
        state_filters=list(filters.states),
        producer_id_filters=list(filters.producer_ids),
        duration_filter=filters.min_duration_ms,
        transactional_id_pattern=filters.pattern,
    )
    deadline = Deadline(client.timeout_ms)
    while True:
        try:
            brokers = sorted(client.refresh(deadline=deadline).brokers)
            return sorted(one for broker_id in brokers for one in _listed_by(client, broker_id, request, deadline))
        except KafkaError as error:
            # One has just left, and those it looked after are looked after by others, perhaps by one asked before.
            if error.code != ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            deadline.pause(error)


def _listed_by(
    client: Client, broker_id: int, request: ListTransactionsRequest, deadline: Deadline
) -> list[TransactionListing]:
    while True:
        answer = client.ask(request, broker_id=broker_id, timeout_ms=deadline.remaining_ms)
        try:
            raise_for(answer.error_code)
        except KafkaError as error:
            if error.code not in (*MOVING, *_BUSY):
                raise
            deadline.pause(error)
            continue
        break
    if answer.unknown_state_filters:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no state {', '.join(answer.unknown_state_filters)}")
    return [
        TransactionListing(one.transactional_id, one.transaction_state, one.producer_id, broker_id)
        for one in answer.transaction_states
    ]


def _ask_coordinator(
    client: Client, transactional_id: str, request: Message, code_of: Callable[[Any], int]
) -> tuple[int, Any]:
    return ask_coordinator(client, transactional_id, TRANSACTION, request, code_of, busy=_BUSY)


def describe_transaction(client: Client, transactional_id: str) -> TransactionView:
    """A transactional id; TRANSACTIONAL_ID_NOT_FOUND when there is none."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    broker_id, answer = _ask_coordinator(
        client, transactional_id, request, lambda one: one.transaction_states[0].error_code
    )
    found = answer.transaction_states[0]
    raise_for(found.error_code, f"there is no transactional id {transactional_id!r}")
    return TransactionView(
        transactional_id,
        found.transaction_state,
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        broker_id,
        sorted((topic.topic, index) for topic in found.topics for index in topic.partitions),
    )


def abort_transaction(client: Client, transactional_id: str) -> None:
    """End what a transactional id has open, through its coordinator: its producer is fenced, as by a successor."""
    described = describe_transaction(client, transactional_id)
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=max(1, described.timeout_ms or FENCING_TIMEOUT_MS)
    )
    _, answer = _ask_coordinator(client, transactional_id, request, lambda one: one.error_code)
    raise_for(answer.error_code)


def open_transactions(client: Client, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """What is open in these partitions, oldest first in each."""

    def build(wanted: list[TopicPartition]) -> DescribeProducersRequest:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in wanted:
            by_topic.setdefault(topic, []).append(partition)
        topics = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in by_topic.items()]
        return DescribeProducersRequest(topics=topics)

    def read(answer: Any) -> Iterable[tuple[TopicPartition, int, list[OpenTransaction]]]:
        for topic in answer.topics:
            for one in topic.partitions:
                found = [
                    OpenTransaction(
                        topic.name,
                        one.partition_index,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                        each.last_timestamp,
                    )
                    for each in one.active_producers
                    if each.current_txn_start_offset >= 0
                ]
                yield (topic.name, one.partition_index), one.error_code, found

    if not partitions:
        return []
    found = client.ask_leaders(partitions, build, read)
    return sorted(
        (one for rows in found.values() for one in rows), key=lambda one: (one.topic, one.partition, one.start_offset)
    )


def find_hanging(client: Client, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """Transactions that are open in a partition and that no coordinator will end there.

    A coordinator is asked after the leader, and the leader again after the coordinator: one that had only just ended is
    not open any more by then.
    """
    suspects = open_transactions(client, partitions)
    if not suspects:
        return []
    producer_ids = sorted({one.producer_id for one in suspects})
    known = {one.producer_id: one.transactional_id for one in list_transactions(client, Filters((), producer_ids))}
    views = {name: describe_transaction(client, name) for name in sorted(set(known.values()))}

    def is_looked_after(one: OpenTransaction) -> bool:
        view = views.get(known.get(one.producer_id, ""))
        return view is not None and view.state in OPEN_STATES and (one.topic, one.partition) in view.partitions

    hanging = [one for one in suspects if not is_looked_after(one)]
    still = {
        (one.topic, one.partition, one.producer_id, one.start_offset)
        for one in open_transactions(client, sorted({(one.topic, one.partition) for one in hanging}))
    }
    return [one for one in hanging if (one.topic, one.partition, one.producer_id, one.start_offset) in still]


def abort_in_partition(client: Client, hanging: OpenTransaction) -> None:
    """Write an abort marker into one partition, past every coordinator."""

    def build(_wanted: list[TopicPartition]) -> WriteTxnMarkersRequest:
        return WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=hanging.producer_id,
                    producer_epoch=hanging.producer_epoch,
                    transaction_result=False,
                    coordinator_epoch=max(0, hanging.coordinator_epoch),
                    topics=[WritableTxnMarkerTopic(name=hanging.topic, partition_indexes=[hanging.partition])],
                )
            ]
        )

    def read(answer: Any) -> Iterable[tuple[TopicPartition, int, bool]]:
        for marker in answer.markers:
            for topic in marker.topics:
                for one in topic.partitions:
                    yield (topic.name, one.partition_index), one.error_code, True

    client.ask_leaders([(hanging.topic, hanging.partition)], build, read)
