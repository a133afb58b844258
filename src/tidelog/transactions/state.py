"""All transactional ids of one partition of `__transaction_state`, as its leader holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.config import NodeConfig
from tidelog.coordination.answers import WaitingAnswers
from tidelog.coordination.shard import Answer, KeyAndValue, Shard
from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.outbox import Outbox, Timer
from tidelog.transactions import records
from tidelog.transactions.markers import Ending, MarkerSender
from tidelog.transactions.transaction import State, Transaction
from tidelog.wire.batch import BatchHeader
from tidelog.wire.stored import decode_transaction_record

COMPLETE_RETRY_MS = 100
"""Between tries to write that a transaction is complete, while too few replicas are in sync."""

GivenId = Callable[[int | None, ErrorCode], None]


class Surroundings:
    """What all shards of a node share."""

    __slots__ = ("config", "markers", "next_producer_id", "outbox", "transaction_version")

    def __init__(
        self,
        outbox: Outbox,
        config: Callable[[], NodeConfig],
        transaction_version: Callable[[], int],
        next_producer_id: Callable[[GivenId], None],
        markers: MarkerSender,
    ) -> None:
        self.outbox = outbox
        self.config = config
        self.transaction_version = transaction_version
        """The finalized transaction.version."""
        self.next_producer_id = next_producer_id
        self.markers = markers


class TransactionsState:
    """What a shard keeps. Requests are decided by the modules beside this one, which write through `save`."""

    def __init__(self, surroundings: Surroundings, shard: Callable[[], Shard]) -> None:
        self.surroundings = surroundings
        self.outbox = surroundings.outbox
        self.transactions: dict[str, Transaction] = {}
        self._endings: dict[str, Ending] = {}
        """Transactions whose markers are under way. Invariant: each is prepared, and its record is committed."""
        self._waiters: dict[str, dict[Callable[[], None], Timer]] = {}
        """Requests that wait for a prepared transaction to be complete."""
        self._saving: Transaction | None = None
        """What is being written, with what its record does not tell."""
        self._shard = shard
        self._answers = WaitingAnswers(self.outbox, shard, lambda: self.config.request_timeout_ms)
        self._expiry: Any = None
        self.is_active = False

    @property
    def config(self) -> NodeConfig:
        """The settings in force now."""
        return self.surroundings.config()

    @property
    def transaction_version(self) -> int:
        """The finalized transaction.version."""
        return self.surroundings.transaction_version()

    def find(self, transactional_id: str) -> Transaction:
        """A known transactional id, else Kafka's code for one that is not."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"no producer has {transactional_id!r}")
        return transaction

    # --- writing ---

    def save(self, transaction: Transaction, answer: Answer) -> None:
        """Write a transactional id's new state; `answer` hears once that it is committed, or not known to be.

        Raises KafkaError, with a code for producers, when nothing was written.
        """
        self._saving = transaction
        try:
            self._write([records.transaction_record(transaction, self.transaction_version)], answer)
        finally:
            self._saving = None

    def forget(self, transactional_ids: list[str]) -> None:
        """Write tombstones."""
        self._write([records.tombstone(one) for one in transactional_ids], lambda _code: None)

    def when_committed(self, answer: Answer) -> None:
        """Answer without writing, when what the answer rests on is committed."""
        self._write([], answer)

    def _write(self, content: list[KeyAndValue], answer: Answer) -> None:
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)  # a late answer to something asked when it still was
        self._answers.write(content, answer)

    # --- waiting for markers ---

    def when_complete(self, transactional_id: str, then: Callable[[bool], None], wait_ms: int | None = None) -> None:
        """Call back with True when a prepared transaction is complete, with False when that takes too long.

        Producers would be told CONCURRENT_TRANSACTIONS and come again: holding them lets them go on at once. A leader's
        request is not held for longer than it would stay away, since others wait behind it on its connection.
        """
        self._answers.check_room()
        self._answers.count += 1
        waiters = self._waiters.setdefault(transactional_id, {})

        def finish(is_complete: bool) -> None:
            if waiters.pop(complete, None) is None:
                return
            self._answers.count -= 1
            timer.cancel()
            then(is_complete)

        def complete() -> None:
            finish(True)

        longest_ms = self.config.add_partitions_to_txn_retry_backoff_max_ms if wait_ms is None else wait_ms
        timer = self.outbox.after(longest_ms, lambda: finish(False))
        waiters[complete] = timer

    def _let_go(self, transactional_id: str) -> None:
        """Whoever waited for a transaction to be complete goes on."""
        for complete in list(self._waiters.pop(transactional_id, ())):
            complete()

    def prepare(self, transaction: Transaction, answer: Answer) -> None:
        """Write a decision. Its markers are sent when it is committed and not before: a decision that was lost with
        its leader could else have been told to some partitions.
        """
        transactional_id = transaction.transactional_id

        def decided(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._send_markers(transactional_id)

        self.save(transaction, answer)
        # In a waiter of its own: the answer above may be given up when its time is up, the markers never.
        self._shard().when_committed(decided)

    def _send_markers(self, transactional_id: str) -> None:
        transaction = self.transactions.get(transactional_id)
        if (
            not self.is_active
            or transaction is None
            or not transaction.is_prepared
            or transactional_id in self._endings
        ):
            return
        ending = Ending(transaction, self._shard().epoch, lambda: self._complete(transactional_id))
        self._endings[transactional_id] = ending
        self.surroundings.markers.start(ending)

    def _complete(self, transactional_id: str) -> None:
        """All markers are written."""
        transaction = self.transactions.get(transactional_id)
        if not self.is_active or transaction is None or transactional_id not in self._endings:
            return
        try:
            self.save(transaction.completed(self.outbox.now_ms), lambda _code: None)
        except KafkaError:
            self.outbox.after(COMPLETE_RETRY_MS, lambda: self._complete(transactional_id))
            return
        self._endings.pop(transactional_id, None)  # gone with its shard, where the disk failed behind the append
        self._let_go(transactional_id)

    # --- what a shard asks of its state ---

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int, batch: BatchHeader | None) -> None:
        """Apply one record. One that cannot be read is told and passed over, as Kafka does."""
        try:
            decoded = decode_transaction_record(key, value)
            if decoded is None:
                return
            transactional_id = decoded[0].transactional_id
            if value is None:
                self.transactions.pop(transactional_id, None)
                return
            transaction = records.from_value(transactional_id, decoded[1])
        except (DecodeError, ValueError) as error:
            self.outbox.tell("transaction-record-unreadable", "warning", reason=str(error))
            return
        own = self._saving
        if own is not None and own.transactional_id == transactional_id:
            transaction = own
        self.transactions[transactional_id] = transaction

    def replay_end_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """Nobody writes to this topic within a transaction."""

    def loaded(self) -> None:
        """Go on where the coordinator before was: decided transactions get their markers."""
        from tidelog.transactions.expiry import Expiry

        self.is_active = True
        now_ms = self.outbox.now_ms
        for one in list(self.transactions.values()):
            if one.state is State.ONGOING and one.start_ms > now_ms:
                # By a clock that was ahead: its time would be up when that is, and readers would wait until then.
                self.transactions[one.transactional_id] = one._replace(start_ms=now_ms)
        prepared = [one.transactional_id for one in self.transactions.values() if one.is_prepared]

        def decided(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                for transactional_id in prepared:
                    self._send_markers(transactional_id)

        if prepared:
            self._shard().when_committed(decided)
        self._expiry = Expiry(self)
        self._expiry.start()

    def closed(self) -> None:
        """Another node looks after these now, and sends what markers are missing."""
        self.is_active = False
        if self._expiry is not None:
            self._expiry.stop()
        for ending in self._endings.values():
            ending.cancel()
        self._endings.clear()
        for transactional_id in list(self._waiters):
            self._let_go(transactional_id)
