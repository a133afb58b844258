"""Time limits: a transaction open for too long is aborted, a transactional id not used for long is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import KafkaError
from tidelog.outbox import Timer
from tidelog.transactions import ending
from tidelog.transactions.transaction import AT_REST, State

if TYPE_CHECKING:
    from tidelog.transactions.state import TransactionsState

MAX_RECORDS = 1_000
"""Tombstones in one batch."""


class Expiry:
    """Looks through a shard at the two intervals that the settings name."""

    def __init__(self, state: TransactionsState) -> None:
        self._state = state
        self._timers: dict[str, Timer] = {}

    def start(self) -> None:
        """Look after the intervals, again and again."""
        self._schedule_aborts()
        self._schedule_forgetting()

    def stop(self) -> None:
        """The shard is gone."""
        for timer in self._timers.values():
            timer.cancel()

    def _schedule_aborts(self) -> None:
        interval_ms = self._state.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._timers["aborts"] = self._state.outbox.after(interval_ms, self._aborts_due)

    def _aborts_due(self) -> None:
        self.abort_timed_out()
        if self._state.is_active:
            self._schedule_aborts()

    def _schedule_forgetting(self) -> None:
        interval_ms = self._state.config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timers["forgetting"] = self._state.outbox.after(interval_ms, self._forgetting_due)

    def _forgetting_due(self) -> None:
        self.forget_unused()
        if self._state.is_active:
            self._schedule_forgetting()

    def abort_timed_out(self) -> None:
        """Abort what is open for longer than its producer said; a write refused now is tried with the next look."""
        now_ms = self._state.outbox.now_ms
        for transaction in list(self._state.transactions.values()):
            if transaction.state is State.ONGOING and transaction.start_ms + transaction.timeout_ms < now_ms:
                try:
                    ending.abort(self._state, transaction)
                except KafkaError:
                    return
                self._state.outbox.tell(
                    "transaction-timed-out",
                    "warning",
                    transactional_id=transaction.transactional_id,
                    producer_id=transaction.producer_id,
                    timeout_ms=transaction.timeout_ms,
                )

    def forget_unused(self) -> None:
        """Forget transactional ids at rest for transactional.id.expiration.ms."""
        oldest_ms = self._state.outbox.now_ms - self._state.config.transactional_id_expiration_ms
        unused = [
            one.transactional_id
            for one in self._state.transactions.values()
            if one.state in AT_REST and one.update_ms <= oldest_ms
        ]
        try:
            for start in range(0, len(unused), MAX_RECORDS):
                self._state.forget(unused[start : start + MAX_RECORDS])
        except KafkaError:
            return
