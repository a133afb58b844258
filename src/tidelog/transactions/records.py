"""The records of `__transaction_state`, as Apache Kafka writes them.

Version 1 of the value has tagged fields and is written from transaction.version 1 on; version 0 before (KIP-890).
"""

from __future__ import annotations

from itertools import groupby

from tidelog.coordination.shard import KeyAndValue
from tidelog.transactions.transaction import State, Transaction
from tidelog.wire.records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tidelog.wire.stored import encode_coordinator_key, encode_versioned

FLEXIBLE_FROM = 1
"""The transaction.version from which on values are written in version 1."""


def transaction_record(transaction: Transaction, transaction_version: int) -> KeyAndValue:
    """A transactional id's new state."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is State.EMPTY else _by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    version = 1 if transaction_version >= FLEXIBLE_FROM else 0
    return _key(transaction.transactional_id), encode_versioned(value, version)


def tombstone(transactional_id: str) -> KeyAndValue:
    """A transactional id is no longer known."""
    return _key(transactional_id), None


def from_value(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """What a record says."""
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        State(value.transaction_status),
        frozenset(
            (topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def _key(transactional_id: str) -> bytes:
    return encode_coordinator_key(TransactionLogKey(transactional_id=transactional_id))


def _by_topic(transaction: Transaction) -> list[PartitionsSchema]:
    return [
        PartitionsSchema(topic=topic, partition_ids=[index for _, index in rows])
        for topic, rows in groupby(sorted(transaction.partitions), key=lambda one: one[0])
    ]
