"""EndTxn: a producer commits or aborts, in transactions v1 and v2 (KIP-890).

What is answered where nothing is open, in v2 by the epoch the producer names: its own present one, or the one before,
which is a repeat of a call that was answered with the present one (-: PRODUCER_FENCED, !: INVALID_TXN_STATE).

    state             abort, present   abort, repeat   commit, present   commit, repeat
    EMPTY             a new epoch      -               !                 -
    COMPLETE_ABORT    a new epoch      NONE            !                 !
    COMPLETE_COMMIT   a new epoch      !               !                 NONE

In v1 the epoch stays, and the present one is the only one: EMPTY refuses both, and a complete transaction is answered
NONE when it ended the way that is asked for.
"""

from __future__ import annotations

from tidelog.errors import ErrorCode, KafkaError
from tidelog.transactions.requests import End, ProducerReply
from tidelog.transactions.state import TransactionsState
from tidelog.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    State,
    Transaction,
    is_exhausted,
)


def end(state: TransactionsState, request: End, reply: ProducerReply, *, fresh_id: int | None = None) -> None:
    """Answer when the decision is committed: from then on it is certain, and the markers follow."""
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    transaction = state.find(request.transactional_id)
    is_v2 = request.client_version >= EPOCH_BUMP_VERSION
    is_repeat = is_v2 and _is_repeat(transaction, request)
    if is_v2 and _is_next(transaction, request):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.producer_id != request.producer_id and not is_repeat:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != transaction.producer_epoch and not is_repeat:
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {transaction.producer_epoch} is in use")
    if not _is_to_be_written(transaction, request, is_repeat, is_v2):
        if transaction.producer_epoch == EPOCH_MAX:
            raise KafkaError(ErrorCode.PRODUCER_FENCED, "its time was up, and its epochs are used up")
        _answer(state, transaction, reply)
        return
    next_producer_id = NO_PRODUCER_ID
    if is_v2 and is_exhausted(transaction.producer_epoch):
        if fresh_id is None:
            _with_fresh_id(state, request, reply)
            return
        next_producer_id = fresh_id
    prepared = transaction.prepared(request.is_commit, request.client_version, next_producer_id, state.outbox.now_ms)

    def decided(code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            reply(code, NO_PRODUCER_ID, NO_EPOCH)
        elif next_producer_id != NO_PRODUCER_ID:
            reply(code, next_producer_id, 0)
        else:
            reply(code, prepared.producer_id, prepared.producer_epoch)

    state.prepare(prepared, decided)


def abort(state: TransactionsState, transaction: Transaction) -> None:
    """End a transaction whose time is up: its producer is fenced with it (KIP-588)."""
    state.prepare(transaction.fenced(state.transaction_version, state.outbox.now_ms), lambda _code: None)


def _is_repeat(transaction: Transaction, request: End) -> bool:
    """Whether this was asked before, and answered with the epoch that is in use now."""
    if transaction.state in (State.EMPTY, State.ONGOING):
        return False
    if transaction.producer_id == request.producer_id:
        return transaction.producer_epoch == request.producer_epoch + 1
    return (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )


def _is_next(transaction: Transaction, request: End) -> bool:
    """Whether this ends the transaction after the one that is being ended: its producer is ahead of the markers."""
    identity = (request.producer_id, request.producer_epoch)
    if not transaction.is_prepared:
        return False
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return identity == (transaction.next_producer_id, 0)
    return identity == (transaction.producer_id, transaction.producer_epoch)


def _is_to_be_written(transaction: Transaction, request: End, is_repeat: bool, is_v2: bool) -> bool:
    """Whether there is something to decide; False when it was decided so before, and raises when otherwise."""
    if transaction.state is State.ONGOING:
        return True
    if transaction.is_prepared:
        if transaction.is_commit == request.is_commit:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    elif is_v2 and not is_repeat:
        if not request.is_commit:
            return True
    elif transaction.state is not State.EMPTY and transaction.is_commit == request.is_commit:
        return False
    raise KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{'commit' if request.is_commit else 'abort'} of a transaction in state {transaction.state.public_name}",
    )


def _answer(state: TransactionsState, transaction: Transaction, reply: ProducerReply) -> None:
    def committed(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            reply(code, transaction.producer_id, transaction.producer_epoch)
        else:
            reply(code, NO_PRODUCER_ID, NO_EPOCH)

    state.when_committed(committed)


def _with_fresh_id(state: TransactionsState, request: End, reply: ProducerReply) -> None:
    def given(producer_id: int | None, code: ErrorCode) -> None:
        if producer_id is None:
            reply(code, NO_PRODUCER_ID, NO_EPOCH)
            return
        try:
            end(state, request, reply, fresh_id=producer_id)
        except KafkaError as error:
            reply(error.code, NO_PRODUCER_ID, NO_EPOCH)

    state.surroundings.next_producer_id(given)
