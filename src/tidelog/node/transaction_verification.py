"""A leader asks a transaction's coordinator before it takes the transaction's first records (KIP-890).

Without that, a record that comes late, when its transaction is over, would open one that nobody ends: readers of
committed records would stop there. Producers of transactions v1 have added the partition themselves, which is
verified; for those of v2 the leader adds it.

    nothing -> ASKED         the first batch of a producer that has no transaction open here
    ASKED -> nothing         the coordinator answered: the batch is appended in the same step, or refused
    ASKED -> void -> nothing its marker came meanwhile: what was asked for is over

Whatever else the producer sends for the partition meanwhile waits its turn behind that batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import SendContinuation
from tidelog.replica.partition import Partition, Role
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

CHANNEL = "verification"
VERSION = 5
MAX_WAITING = 10_000
"""Batches that may wait for coordinators; a further one is refused with a code that producers try again on."""

_UNVERIFIED = dict.fromkeys(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""Codes of the coordinator that producers do not expect from a leader: this one has them try again, and does not have
them look for another leader."""

Verified = Callable[[KafkaError | None], None]
"""Hears None when the records may be appended, in that very step."""


class Support(Enum):
    """What the producer's request version says about it."""

    OLD = "old"
    """Knows no code for a transaction that must be aborted: INVALID_TXN_STATE takes its place."""
    ABORTABLE = "abortable"
    """Knows TRANSACTION_ABORTABLE."""
    ADDS = "adds"
    """Leaves it to the leader to add partitions: transactions v2."""


class Asker:
    """A producer's batch, as far as its coordinator must know of it."""

    __slots__ = ("epoch", "producer_id", "support", "transactional_id")

    def __init__(self, transactional_id: str, producer_id: int, epoch: int, support: Support) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.support = support


class _Guard:
    """One question under way, and who waits behind it."""

    __slots__ = ("asker", "behind", "is_void", "leader_epoch", "partition", "started_ms", "then")

    def __init__(self, partition: Partition, asker: Asker, then: Verified, started_ms: int) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.asker = asker
        self.then = then
        self.started_ms = started_ms
        self.behind: deque[Callable[[], None]] = deque()
        self.is_void = False


Key = tuple[str, int, int]


class Verification:
    """All questions of this node's leaders to coordinators."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._guards: dict[Key, _Guard] = {}
        """By topic, partition and producer id."""
        self._waiting = 0
        self._to_ask: dict[tuple[str, int, int, bool], list[_Guard]] = {}
        """Questions of this step, by transaction (id, producer id, epoch, and whether to add): one request each."""

    def is_needed(self, partition: Partition, producer_id: int, epoch: int) -> bool:
        """Whether a transactional batch must wait: nothing is open here in its epoch, or others wait before it."""
        producer = partition.log.producers.producers.get(producer_id)
        is_open = producer is not None and producer.transaction_first_offset >= 0 and producer.epoch == epoch
        return not is_open or (partition.topic, partition.index, producer_id) in self._guards

    def ask(self, partition: Partition, asker: Asker, then: Verified, again: Callable[[], None]) -> None:
        """Call `then` with the outcome; or `again`, to begin anew, when what this waited behind is decided."""
        if self._waiting >= MAX_WAITING:
            then(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too many batches wait for their coordinators"))
            return
        key = (partition.topic, partition.index, asker.producer_id)
        guard = self._guards.get(key)
        self._waiting += 1
        if guard is not None:
            guard.behind.append(again)
            return
        guard = self._guards[key] = _Guard(partition, asker, then, self._node.outbox.now_ms)
        self._put(guard)

    def marker_written(self, topic: str, index: int, producer_id: int, epoch: int) -> None:
        """A transaction ended here, maybe the one that was asked for.

        In transactions v2 that one ends with a higher epoch than its own: a marker with its own epoch ends the one
        before, which the producer need not wait for.
        """
        guard = self._guards.get((topic, index, producer_id))
        if guard is not None and epoch >= guard.asker.epoch + (guard.asker.support is Support.ADDS):
            guard.is_void = True

    # --- asking ---

    def _put(self, guard: _Guard) -> None:
        if not self._to_ask:
            self._node.outbox.at_end_of_step(self._send)
        asker = guard.asker
        identity = (asker.transactional_id, asker.producer_id, asker.epoch, asker.support is Support.ADDS)
        self._to_ask.setdefault(identity, []).append(guard)

    def _send(self) -> None:
        to_ask, self._to_ask = self._to_ask, {}
        for (transactional_id, producer_id, epoch, adds), guards in to_ask.items():
            coordinator = self._node.transaction_links.coordinator_of(transactional_id)
            if coordinator < 0:
                for guard in guards:
                    self._settle(guard, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                continue
            # A request a transaction, though it could name several: their answers would wait for each other.
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=not adds,
                topics=_topics(guards),
            )
            self._node.transaction_links.ask(
                coordinator,
                CHANNEL,
                ApiKey.ADD_PARTITIONS_TO_TXN,
                VERSION,
                AddPartitionsToTxnRequest(transactions=[transaction]),
                self._answered(guards),
            )

    def _answered(self, guards: list[_Guard]) -> SendContinuation:
        def answered(response: Any, error: str | None) -> None:
            codes: dict[tuple[str, int], ErrorCode] = {}
            missing = ErrorCode.NETWORK_EXCEPTION
            if error is None:
                missing = ErrorCode(response.error_code) or ErrorCode.UNKNOWN_SERVER_ERROR
                for transaction in response.results_by_transaction:
                    for topic in transaction.topic_results:
                        for one in topic.results_by_partition:
                            codes[topic.name, one.partition_index] = ErrorCode(one.partition_error_code)
            for guard in guards:
                self._settle(guard, codes.get((guard.partition.topic, guard.partition.index), missing))

        return answered

    # --- what came of it ---

    def _settle(self, guard: _Guard, code: ErrorCode) -> None:
        config = self._node.config
        waited_ms = self._node.outbox.now_ms - guard.started_ms
        if (
            code is ErrorCode.CONCURRENT_TRANSACTIONS
            and guard.asker.support is Support.ADDS
            and waited_ms < config.add_partitions_to_txn_retry_backoff_max_ms
        ):
            # The transaction before is being ended: it is over in a moment.
            self._node.outbox.after(config.add_partitions_to_txn_retry_backoff_ms, lambda: self._put(guard))
            return
        partition = guard.partition
        del self._guards[partition.topic, partition.index, guard.asker.producer_id]
        self._waiting -= 1 + len(guard.behind)
        guard.then(self._complaint(guard, code))
        for again in guard.behind:
            again()

    @staticmethod
    def _complaint(guard: _Guard, code: ErrorCode) -> KafkaError | None:
        if code is not ErrorCode.NONE:
            if code is ErrorCode.PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH  # a leader never says the other
            elif code is ErrorCode.TRANSACTION_ABORTABLE and guard.asker.support is Support.OLD:
                code = ErrorCode.INVALID_TXN_STATE
            reason = f"the coordinator did not confirm the transaction: {code.name}"
            return KafkaError(_UNVERIFIED.get(code, code), reason)
        partition = guard.partition
        if partition.role is not Role.LEADER or partition.leader_epoch != guard.leader_epoch:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if guard.is_void:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction ended before this record came")
        return None


def _topics(guards: list[_Guard]) -> list[AddPartitionsToTxnTopic]:
    by_topic: dict[str, list[int]] = {}
    for guard in guards:
        by_topic.setdefault(guard.partition.topic, []).append(guard.partition.index)
    return [AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in by_topic.items()]
