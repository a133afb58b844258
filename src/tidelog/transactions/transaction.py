"""One transactional id as its coordinator knows it: the producer that may use it, and its transaction.

    EMPTY | COMPLETE_* -> EMPTY             a producer was initialised: a new epoch, or a new producer id
    EMPTY | COMPLETE_* -> ONGOING           the first partition was added
    ONGOING -> ONGOING                      another partition was added
    ONGOING -> PREPARE_COMMIT               the producer committed: from here on nothing turns it back
    ONGOING -> PREPARE_ABORT                the producer aborted, was fenced, or its time was up
    EMPTY | COMPLETE_* -> PREPARE_ABORT     a producer of transactions v2 aborts one that never wrote (KIP-890)
    PREPARE_COMMIT -> COMPLETE_COMMIT       every partition has its marker
    PREPARE_ABORT -> COMPLETE_ABORT         the same
    EMPTY | COMPLETE_* -> gone              not used for transactional.id.expiration.ms

Transactions are values: a request's outcome is a new one, which counts once its record is in the log.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_MAX = (1 << 15) - 1
FIRST_VERSION = 0
EPOCH_BUMP_VERSION = 2
"""The version of the transaction protocol that raises the epoch with every transaction (KIP-890)."""


class State(IntEnum):
    """See the head of this file; the numbers are those in the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def public_name(self) -> str:
        """As tools show it."""
        return self.name.title().replace("_", "")


PREPARED = frozenset((State.PREPARE_COMMIT, State.PREPARE_ABORT))
"""Decided, with markers still to be written."""
AT_REST = frozenset((State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT))
LEGAL: dict[State, frozenset[State]] = {
    State.EMPTY: AT_REST,
    State.ONGOING: AT_REST | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset((State.ONGOING,)),
    State.PREPARE_ABORT: AT_REST | {State.ONGOING},
    State.COMPLETE_COMMIT: frozenset((State.PREPARE_COMMIT,)),
    State.COMPLETE_ABORT: frozenset((State.PREPARE_ABORT,)),
}
"""The states that each state may follow."""


def is_exhausted(epoch: int) -> bool:
    """Whether no producer may be given a higher epoch: the last one is kept for fencing."""
    return epoch >= EPOCH_MAX - 1


class Transaction(NamedTuple):
    """A transactional id's state at one time."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Where it wrote or may write; empty when it is complete."""
    start_ms: int = -1
    update_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Given to the producer when this transaction is complete, where its epochs are used up (KIP-890)."""
    client_version: int = FIRST_VERSION
    """The version of the transaction protocol its producer speaks."""
    last_epoch: int = NO_EPOCH
    """The epoch before the last raise that this producer asked for itself, so that it may ask again (KIP-360). In
    memory only, as in Kafka."""

    @property
    def is_commit(self) -> bool:
        """Which way a decided transaction went."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    @property
    def is_prepared(self) -> bool:
        """Whether it is decided and its markers are not all written."""
        return self.state in PREPARED

    # --- transitions ---

    def initialised(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """A producer may begin, with this id and epoch."""
        return self._to(
            State.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=-1,
            client_version=FIRST_VERSION,
        )

    def with_partitions(self, added: frozenset[TopicPartition], client_version: int, now_ms: int) -> Transaction:
        """It goes on, or begins, with more partitions."""
        begins = self.state is not State.ONGOING
        return self._to(
            State.ONGOING,
            now_ms,
            partitions=self.partitions | added,
            start_ms=now_ms if begins else self.start_ms,
            client_version=client_version,
        )

    def prepared(self, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """It is decided by its producer. With transactions v2 the markers carry a new epoch already: whatever the
        producer still sends for this transaction comes too late.
        """
        raises = client_version >= EPOCH_BUMP_VERSION
        return self._to(
            State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
            now_ms,
            producer_epoch=self.producer_epoch + 1 if raises else self.producer_epoch,
            last_epoch=self.producer_epoch if raises else self.last_epoch,
            next_producer_id=next_producer_id,
            client_version=client_version,
            # An abort that never wrote has no start of its own.
            start_ms=self.start_ms if self.state is State.ONGOING else now_ms,
        )

    def fenced(self, client_version: int, now_ms: int, last_epoch: int = NO_EPOCH) -> Transaction:
        """It is aborted over its producer's head, whose epoch is worth nothing from now on.

        `last_epoch` is its own epoch where the producer itself asked for that, so that it may ask again.
        """
        return self._to(
            State.PREPARE_ABORT,
            now_ms,
            producer_epoch=self.producer_epoch + 1,
            last_epoch=last_epoch,
            next_producer_id=NO_PRODUCER_ID,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        rotates = self.client_version >= EPOCH_BUMP_VERSION and self.next_producer_id != NO_PRODUCER_ID
        return self._to(
            State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
            now_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def _to(self, state: State, now_ms: int, **changes: object) -> Transaction:
        assert self.state in LEGAL[state], f"{self.transactional_id}: {self.state.name} -> {state.name}"
        changed = self._replace(state=state, update_ms=now_ms, previous_producer_id=self.producer_id)
        return changed._replace(**changes)  # type: ignore[arg-type]
