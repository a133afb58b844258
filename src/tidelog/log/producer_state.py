"""What a log knows of its idempotent and transactional producers (KIP-98), to refuse gaps and notice repeats.

For each producer: its epoch, its last five batches, and where its open transaction began. All checks come before the
append and change nothing; `note_batch` and `note_marker` follow the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.errors import ErrorCode, KafkaError

BATCHES_KEPT = 5
"""As many as a producer may have in flight: any of them may come again."""
NO_SEQUENCE = -1
NO_OFFSET = -1
SEQUENCE_MAX = (1 << 31) - 1
EPOCH_MAX = (1 << 15) - 1


class KnownBatch(NamedTuple):
    """A batch a producer may send again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer as this log knows it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_seen_ms",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = -1,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_first_offset: int = NO_OFFSET,
        batches: Iterable[KnownBatch] = (),
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """Of the coordinator that wrote its last marker: an older one is a zombie."""
        self.last_timestamp = last_timestamp
        self.last_seen_ms = last_timestamp
        """Expiry counts from here: the records' own times may be long past when they are written."""
        self.transaction_first_offset = transaction_first_offset
        self.batches = list(batches)
        """Of this epoch only, oldest first, at most BATCHES_KEPT."""

    @property
    def last_sequence(self) -> int:
        """Of the newest batch in this epoch; -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def begin_epoch(self, epoch: int) -> None:
        """Batches of another epoch are of no use any more: sequences start anew."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class CompletedTransaction(NamedTuple):
    """A transaction whose marker was just written."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


class ProducerState:
    """All producers of one log, and which transactions are not yet certain."""

    __slots__ = ("end_offset", "expiry_ms", "ongoing", "producers", "undecided_ends")

    def __init__(self, expiry_ms: int) -> None:
        self.expiry_ms = expiry_ms
        self.producers: dict[int, Producer] = {}
        self.ongoing: dict[int, int] = {}
        """Producer by first offset of its open transaction. Invariant: in the order of the offsets."""
        self.undecided_ends: dict[int, int] = {}
        """Marker offset by first offset of a transaction whose marker may still be above the high watermark."""
        self.end_offset = 0
        """What was noted reaches up to here."""

    # --- checking, before the append ---

    def check_batch(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        *,
        is_transactional: bool,
        is_internal: bool,
    ) -> KnownBatch | None:
        """Raise when a data batch may not be appended; a known batch when it is a repeat and need not be."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return None  # nothing known, or all forgotten: it may start anywhere
        if epoch == producer.epoch and not is_internal:
            last = producer.last_sequence
            if first_sequence != (last + 1) & SEQUENCE_MAX:
                for known in producer.batches:
                    if known.first_sequence == first_sequence and known.last_sequence == last_sequence:
                        return known
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} sent sequence {first_sequence} after {last}",
                )
        elif epoch < producer.epoch:
            raise self._stale_epoch(producer, epoch)
        elif epoch > producer.epoch and first_sequence != 0 and producer.epoch >= 0 and not is_internal:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} began epoch {epoch} with sequence {first_sequence}",
            )
        if producer.transaction_first_offset >= 0 and not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {producer_id} has an open transaction and wrote outside of it"
            )
        return None

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Raise when an end-of-transaction marker is a zombie's.

        Transactions v2 (KIP-890) raise the epoch with every transaction, so there a marker of the epoch already seen
        is stale too, unless it repeats one whose transaction is over.
        """
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        if transaction_version >= 2 and epoch == producer.epoch:
            if producer.transaction_first_offset >= 0 and epoch != EPOCH_MAX:
                raise self._stale_epoch(producer, epoch)
        elif epoch < producer.epoch:
            raise self._stale_epoch(producer, epoch)
        if producer.coordinator_epoch > coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker of coordinator epoch {coordinator_epoch}, {producer.coordinator_epoch} was seen",
            )

    @staticmethod
    def _stale_epoch(producer: Producer, epoch: int) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer.producer_id} wrote with epoch {epoch}, {producer.epoch} was seen",
        )

    # --- noting, after the append ---

    def note_batch(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        is_transactional: bool,
        now_ms: int,
    ) -> None:
        """A data batch is in the log."""
        producer = self._producer(producer_id)
        if epoch != producer.epoch:
            producer.begin_epoch(epoch)
        batches = producer.batches
        if len(batches) >= BATCHES_KEPT:
            del batches[0]
        batches.append(KnownBatch(first_sequence, last_sequence, first_offset, last_offset, timestamp))
        producer.last_timestamp = timestamp
        producer.last_seen_ms = max(timestamp, now_ms)
        if is_transactional and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = first_offset
            self.ongoing[first_offset] = producer_id

    def note_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        is_abort: bool,
        now_ms: int,
    ) -> CompletedTransaction | None:
        """A marker is in the log; what it completed, when the transaction had written anything here."""
        producer = self._producer(producer_id)
        first_offset = producer.transaction_first_offset
        producer.begin_epoch(epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.last_seen_ms = max(timestamp, now_ms)
        producer.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        self.ongoing.pop(first_offset, None)
        self.undecided_ends[first_offset] = offset
        last_stable_offset = next(iter(self.ongoing), offset + 1)
        return CompletedTransaction(producer_id, first_offset, offset, is_abort, last_stable_offset)

    def _producer(self, producer_id: int) -> Producer:
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(producer_id)
        return producer

    # --- transactions ---

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of a transaction that is open, or ended above the high watermark."""
        if self.undecided_ends:
            for first_offset in [first for first, end in self.undecided_ends.items() if end < high_watermark]:
                del self.undecided_ends[first_offset]
        ongoing = next(iter(self.ongoing), None)
        if not self.undecided_ends:
            return ongoing
        undecided = min(self.undecided_ends)
        return undecided if ongoing is None else min(undecided, ongoing)

    def has_open_transaction(self, producer_id: int) -> bool:
        """Whether this producer has written to a transaction that is not ended here (KIP-890 asks before verifying)."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.transaction_first_offset >= 0

    # --- forgetting ---

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers that were not heard of for long; how many."""
        expired = [
            producer.producer_id
            for producer in self.producers.values()
            if producer.transaction_first_offset < 0 and now_ms - producer.last_seen_ms >= self.expiry_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def start_from(self, producers: Iterable[Producer], end_offset: int) -> None:
        """Forget everything and know what a snapshot taken at `end_offset` knew."""
        self.producers = {producer.producer_id: producer for producer in producers}
        self.ongoing = {
            producer.transaction_first_offset: producer.producer_id
            for producer in sorted(self.producers.values(), key=lambda one: one.transaction_first_offset)
            if producer.transaction_first_offset >= 0
        }
        self.undecided_ends = {}
        self.end_offset = end_offset
