"""Bugs of transactions, found where there are transactional producers, zombies and readers of committed records."""

from __future__ import annotations

from typing import Any

from tidelog.errors import ErrorCode
from tidelog.groups.offsets import CommittedOffset, Offsets
from tidelog.log.log import Log
from tidelog.log.producer_state import ProducerState
from tidelog.log.reader import Reader as LogReader
from tidelog.node.apis import end_txn
from tidelog.node.transaction_verification import Support, Verification
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.mutants.coordination_workloads import late_writes, restless_coordinators, rivals
from tidelog.transactions import adding
from tidelog.transactions.state import TransactionsState
from tidelog.transactions.transaction import Transaction


def _marker_before_decision(original: Original, hit: Hit) -> Original:
    def prepare(self: TransactionsState, transaction: Transaction, answer: Any) -> None:
        original(self, transaction, answer)
        transactional_id = transaction.transactional_id
        known = self.transactions.get(transactional_id)
        if known is not None and known.is_prepared and transactional_id not in self._endings:
            hit()
            self._send_markers(transactional_id)

    return prepare


def _epoch_not_compared_by_coordinator(original: Original, hit: Hit) -> Original:
    def check(transaction: Transaction, request: Any) -> None:
        if transaction.producer_epoch > request.producer_epoch:
            hit()
            request = request._replace(producer_epoch=transaction.producer_epoch)
        original(transaction, request)

    return check


def _epoch_not_compared_at_end(original: Original, hit: Hit) -> Original:
    def end(state: TransactionsState, request: Any, reply: Any, **more: Any) -> None:
        known = state.transactions.get(request.transactional_id)
        if known is not None and known.producer_epoch > request.producer_epoch:
            hit()
            request = request._replace(producer_epoch=known.producer_epoch)
        original(state, request, reply, **more)

    return end


def _epoch_not_compared_by_leader(original: Original, hit: Hit) -> Original:
    def check_batch(self: ProducerState, producer_id: int, epoch: int, *sequences: int, **more: bool) -> Any:
        producer = self.producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            hit()
            return None
        return original(self, producer_id, epoch, *sequences, **more)

    return check_batch


def _stable_is_watermark(original: Original, hit: Hit) -> Original:
    def last_stable_offset(self: Log, high_watermark: int) -> int:
        right: int = original(self, high_watermark)
        if right < high_watermark:
            hit()
        return high_watermark

    return last_stable_offset


def _aborted_cut_short(original: Original, hit: Hit) -> Original:
    def aborted_transactions(self: LogReader, first_offset: int, end_offset: int) -> list[Any]:
        right: list[Any] = original(self, first_offset, end_offset)
        if right:
            hit()
        return right[:-1]

    return aborted_transactions


def _pending_counts(original: Original, hit: Hit) -> Original:
    def commit_pending(
        self: Offsets, producer_id: int, group_id: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        hit()
        self.commit(group_id, topic, partition, committed)
        original(self, producer_id, group_id, topic, partition, committed)

    return commit_pending


def _not_verified(original: Original, hit: Hit) -> Original:
    def settle(self: Verification, guard: Any, code: ErrorCode) -> None:
        refused = (ErrorCode.PRODUCER_FENCED, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if guard.asker.support is not Support.ADDS and (code in refused or guard.is_void):
            hit()
            guard.is_void = False
            code = ErrorCode.NONE
        original(self, guard, code)

    return settle


def _decision_forgotten(original: Original, hit: Hit) -> Original:
    def loaded(self: TransactionsState) -> None:
        for transactional_id, known in list(self.transactions.items()):
            if known.is_prepared:
                hit()
                self.transactions[transactional_id] = known.completed(self.outbox.now_ms)
        original(self)

    return loaded


MUTANTS = (
    Mutant(
        "marker-before-decision",
        "markers are sent before the decision is committed: a coordinator that comes after may decide otherwise",
        [(TransactionsState, "prepare", _marker_before_decision)],
        rivals,
    ),
    Mutant(
        "zombie-not-fenced",
        "producers whose epoch is over are not fenced, neither by coordinators nor by leaders",
        [
            (adding, "_check", _epoch_not_compared_by_coordinator),
            (end_txn, "end", _epoch_not_compared_at_end),
            (ProducerState, "check_batch", _epoch_not_compared_by_leader),
        ],
        rivals,
    ),
    Mutant(
        "stable-offset-is-watermark",
        "the last stable offset is the watermark: open transactions are read as committed",
        [(Log, "last_stable_offset", _stable_is_watermark)],
        rivals,
    ),
    Mutant(
        "aborted-index-cut-short",
        "readers are not told the last aborted transaction of what they fetch",
        [(LogReader, "aborted_transactions", _aborted_cut_short)],
        rivals,
    ),
    Mutant(
        "pending-offset-counts",
        "an offset committed in a transaction counts before the transaction's marker",
        [(Offsets, "commit_pending", _pending_counts)],
        rivals,
    ),
    Mutant(
        "verification-skipped",
        "a leader takes records of a transaction that its coordinator does not know to be open (before KIP-890)",
        [(Verification, "_settle", _not_verified)],
        late_writes,
    ),
    Mutant(
        "decision-forgotten",
        "a coordinator that takes over does not send the markers of what was decided before",
        [(TransactionsState, "loaded", _decision_forgotten)],
        restless_coordinators,
    ),
)
