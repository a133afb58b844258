"""Partitions of a transaction: added by its producer, or by a leader that is about to take its records (KIP-890)."""

from __future__ import annotations

from tidelog.errors import ErrorCode, KafkaError
from tidelog.transactions.requests import AddPartitions, CodeReply, PartitionsReply
from tidelog.transactions.state import TransactionsState
from tidelog.transactions.transaction import State, Transaction


def add_partitions(
    state: TransactionsState,
    request: AddPartitions,
    reply: CodeReply,
    *,
    may_wait: bool = True,
    wait_ms: int | None = None,
) -> None:
    """Answer when it is on record that the transaction reaches these partitions: their markers will be written.

    While the transaction before is being ended this waits, for `wait_ms` at most.
    """
    transaction = _find(state, request)
    if transaction.is_prepared:
        # Before all else: the producer may have the id that it will have when this one is complete.
        if not may_wait:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _wait(state, request, reply, wait_ms)
        return
    _check(transaction, request)
    if transaction.state is State.ONGOING and request.partitions <= transaction.partitions:
        state.when_committed(reply)
    else:
        begun = transaction.with_partitions(request.partitions, request.client_version, state.outbox.now_ms)
        state.save(begun, reply)


def verify_partitions(state: TransactionsState, request: AddPartitions, reply: PartitionsReply) -> None:
    """Say of each partition whether the transaction is open and has it: what a leader asks before it takes records of a
    producer that adds partitions itself.
    """
    transaction = _find(state, request)
    if transaction.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check(transaction, request)
    found = {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in request.partitions
    }
    state.when_committed(lambda code: reply({partition: own or code for partition, own in found.items()}))


def _find(state: TransactionsState, request: AddPartitions) -> Transaction:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    return state.find(request.transactional_id)


def _check(transaction: Transaction, request: AddPartitions) -> None:
    if transaction.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _wait(state: TransactionsState, request: AddPartitions, reply: CodeReply, wait_ms: int | None) -> None:
    def complete(is_complete: bool) -> None:
        try:
            if not is_complete:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            add_partitions(state, request, reply, may_wait=False)
        except KafkaError as error:
            reply(error.code)

    state.when_complete(request.transactional_id, complete, wait_ms)
