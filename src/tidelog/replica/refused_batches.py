"""Batches that were refused a moment ago, so that what the producer had sent behind them is refused alike.

A producer has several batches of a partition on their way. The first may reach a broker that does not lead yet, and be
refused with an error that asks to try again; the second may reach the same broker when it leads. To the log that second
one looks out of order, or, where the log does not know the producer, fit to begin with. Both answers are harmful: some
clients (librdkafka) take OUT_OF_ORDER_SEQUENCE_NUMBER behind a failed batch as a reason to raise their epoch and send
everything that is unanswered again, in all partitions, whether it was written or not; and a log that begins with the
second batch can never take the first. The truth is that the second was refused for the reason the first was.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple, TypeAlias

from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Outbox
from tidelog.wire.batch_header import HEADER_SIZE, NO_PRODUCER_ID, read_producer

REMEMBERED_MS = 5_000
"""Longer than a batch can be on its way behind one that was refused, unless a network holds it back."""
MAX_REMEMBERED = 1_000
_RETRIED = frozenset(
    (
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""What a producer is told before anything is written, and answers by sending the batch again."""
_HALF_OF_SEQUENCES = 1 << 30
_SEQUENCE_MASK = 0x7FFFFFFF

Place: TypeAlias = tuple[str | bytes, int]
"""A partition as its producer names it: by the topic's name or id, and its index."""
_Producer: TypeAlias = tuple[int, int, int]
"""Id, epoch and first sequence, as a batch has them."""


class _Refusal(NamedTuple):
    epoch: int
    sequence: int
    code: ErrorCode
    time_ms: int


class RefusedBatches:
    """The newest refusal of each producer in each partition, for a short while."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._refusals: dict[tuple[Place, int], _Refusal] = {}
        """Oldest first. Invariant: at most MAX_REMEMBERED."""

    def __bool__(self) -> bool:
        """Whether anything is remembered: hardly ever, so that a healthy partition pays nothing."""
        return bool(self._refusals)

    def check_first(self, place: Place, records: Any, known_producers: Container[int]) -> None:
        """Raise when a batch would be the first of its producer in a log although an earlier one was refused."""
        producer = _producer_of(records)
        if producer is not None and producer[0] not in known_producers:
            refusal = self._before(place, producer)
            if refusal is not None:
                raise _alike(refusal)

    def judged(self, place: Place, records: Any, error: KafkaError) -> KafkaError:
        """What to tell the producer of a batch that was refused; remembered when the producer will try again."""
        producer = _producer_of(records)
        if producer is None:
            return error
        before = self._before(place, producer)
        if error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error if before is None else _alike(before)
        if error.code in _RETRIED and before is None:
            producer_id, epoch, sequence = producer
            self._remember((place, producer_id), _Refusal(epoch, sequence, error.code, self._outbox.now_ms))
        return error

    def _before(self, place: Place, producer: _Producer) -> _Refusal | None:
        """The refusal of an earlier batch of the same producer and epoch, when it was not long ago."""
        producer_id, epoch, sequence = producer
        refusal = self._refusals.get((place, producer_id))
        if refusal is None or refusal.epoch != epoch or self._is_old(refusal):
            return None
        distance = (sequence - refusal.sequence) & _SEQUENCE_MASK
        return refusal if 0 < distance < _HALF_OF_SEQUENCES else None

    def _is_old(self, refusal: _Refusal) -> bool:
        return self._outbox.now_ms - refusal.time_ms >= REMEMBERED_MS

    def _remember(self, key: tuple[Place, int], refusal: _Refusal) -> None:
        if not self._refusals:
            self._outbox.after(REMEMBERED_MS, self._forget_old)
        self._refusals.pop(key, None)
        self._refusals[key] = refusal
        if len(self._refusals) > MAX_REMEMBERED:
            del self._refusals[next(iter(self._refusals))]

    def _forget_old(self) -> None:
        self._refusals = {key: one for key, one in self._refusals.items() if not self._is_old(one)}
        if self._refusals:
            self._outbox.after(REMEMBERED_MS, self._forget_old)


def _alike(refusal: _Refusal) -> KafkaError:
    return KafkaError(refusal.code, f"sequence {refusal.sequence} of this producer was refused and must come first")


def _producer_of(records: Any) -> _Producer | None:
    """Who wrote a batch; None when it does not say."""
    if records is None or len(records) < HEADER_SIZE:
        return None
    producer = read_producer(records)
    return None if producer[0] == NO_PRODUCER_ID or producer[2] < 0 else producer
