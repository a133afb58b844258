"""InitProducerId for a transactional id: the producer that asked last is the one that may use it (KIP-98, KIP-360)."""

from __future__ import annotations

from tidelog.errors import ErrorCode, KafkaError
from tidelog.transactions.requests import Initialise, ProducerReply
from tidelog.transactions.state import TransactionsState
from tidelog.transactions.transaction import EPOCH_MAX, NO_EPOCH, NO_PRODUCER_ID, State, Transaction, is_exhausted


def initialise(
    state: TransactionsState,
    request: Initialise,
    reply: ProducerReply,
    *,
    fresh_id: int | None = None,
    may_wait: bool = True,
) -> None:
    """Answer with an id and an epoch that fence whoever used the transactional id before.

    A transaction it left open is aborted first. `fresh_id` is an unused producer id, when one was got for this request.
    """
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    if not 0 < request.timeout_ms <= state.config.transaction_max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"a timeout of {request.timeout_ms} ms, the limit is {state.config.transaction_max_timeout_ms}",
        )
    transaction = state.transactions.get(request.transactional_id)
    if transaction is None:
        if fresh_id is None:
            _with_fresh_id(state, request, reply, may_wait)
            return
        transaction = Transaction(request.transactional_id, fresh_id, NO_EPOCH, request.timeout_ms)
    elif transaction.is_prepared:
        _wait(state, request, reply, may_wait)
        return
    elif not _may_go_on(transaction, request):
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"{request.transactional_id!r} has another producer now")
    if transaction.state is State.ONGOING:
        _fence(state, transaction, request, reply, may_wait)
    elif _needs_fresh_id(transaction, request.producer_epoch):
        if fresh_id is None:
            _with_fresh_id(state, request, reply, may_wait)
            return
        _save(
            state,
            transaction.initialised(fresh_id, 0, request.producer_epoch, request.timeout_ms, state.outbox.now_ms),
            reply,
        )
    else:
        epoch, last_epoch = _next_epoch(transaction, request.producer_epoch)
        _save(
            state,
            transaction.initialised(
                transaction.producer_id, epoch, last_epoch, request.timeout_ms, state.outbox.now_ms
            ),
            reply,
        )


def _may_go_on(transaction: Transaction, request: Initialise) -> bool:
    """Whether the id a producer says it has is its own: the present one, or one whose epochs it had used up."""
    if request.producer_id == NO_PRODUCER_ID:
        return True
    if transaction.state is State.ONGOING and request.producer_epoch != transaction.producer_epoch:
        return False  # a zombie must not abort what the living producer has open
    return request.producer_id == transaction.producer_id or (
        request.producer_id == transaction.previous_producer_id and is_exhausted(request.producer_epoch)
    )


def _needs_fresh_id(transaction: Transaction, expected: int) -> bool:
    """Whether there is no epoch left to give; the last of all, which fenced the producer itself, is none either."""
    if transaction.producer_epoch == EPOCH_MAX and expected == transaction.last_epoch:
        return True
    return is_exhausted(transaction.producer_epoch) and expected in (NO_EPOCH, transaction.producer_epoch)


def _next_epoch(transaction: Transaction, expected: int) -> tuple[int, int]:
    """The epoch to give, and the one before it. A producer that did not hear the answer gets the same again."""
    current = transaction.producer_epoch
    if expected == NO_EPOCH:
        return current + 1, NO_EPOCH
    if current in (NO_EPOCH, expected):
        return current + 1, current
    if expected == transaction.last_epoch:
        return current, expected
    raise KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {expected} is over, {current} is in use")


def _save(state: TransactionsState, transaction: Transaction, reply: ProducerReply) -> None:
    def committed(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            reply(code, transaction.producer_id, transaction.producer_epoch)
        else:
            reply(code, NO_PRODUCER_ID, NO_EPOCH)

    state.save(transaction, committed)


def _fence(
    state: TransactionsState, transaction: Transaction, request: Initialise, reply: ProducerReply, may_wait: bool
) -> None:
    """Abort what is open, then go on.

    The epoch raised here is given to nobody, unless the very producer that has the transaction open asked: that one may
    name its own epoch again.
    """
    is_answered = False

    def once(code: ErrorCode, producer_id: int, epoch: int) -> None:
        nonlocal is_answered
        if not is_answered:
            is_answered = True
            reply(code, producer_id, epoch)

    def decided(code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            once(code, NO_PRODUCER_ID, NO_EPOCH)

    fenced = transaction.fenced(state.transaction_version, state.outbox.now_ms, request.producer_epoch)
    state.prepare(fenced, decided)
    try:
        if state.find(request.transactional_id).is_prepared:
            _wait(state, request, once, may_wait)
        else:
            initialise(state, request, once, may_wait=False)
    except KafkaError as error:
        once(error.code, NO_PRODUCER_ID, NO_EPOCH)


def _wait(state: TransactionsState, request: Initialise, reply: ProducerReply, may_wait: bool) -> None:
    """Go on when the markers are written, or send the producer away to come again."""
    if not may_wait:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def complete(is_complete: bool) -> None:
        try:
            if not is_complete:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            initialise(state, request, reply, may_wait=False)
        except KafkaError as error:
            reply(error.code, NO_PRODUCER_ID, NO_EPOCH)

    state.when_complete(request.transactional_id, complete)


def _with_fresh_id(state: TransactionsState, request: Initialise, reply: ProducerReply, may_wait: bool) -> None:
    """Decide again when a producer id has come: much may have happened meanwhile."""

    def given(producer_id: int | None, code: ErrorCode) -> None:
        if producer_id is None:
            reply(code, NO_PRODUCER_ID, NO_EPOCH)
            return
        try:
            initialise(state, request, reply, fresh_id=producer_id, may_wait=may_wait)
        except KafkaError as error:
            reply(error.code, NO_PRODUCER_ID, NO_EPOCH)

    state.surroundings.next_producer_id(given)
