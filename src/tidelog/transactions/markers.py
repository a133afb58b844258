"""Markers on their way to the leaders of a transaction's partitions (WriteTxnMarkers).

Each leader has a queue; what gathers in it while requests are under way goes together in the next one. A partition that
could not take its marker is tried again, at its leader of then, for as long as this node is the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.outbox import Outbox, SendContinuation
from tidelog.transactions.transaction import TopicPartition, Transaction
from tidelog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

Ask = Callable[[int, WriteTxnMarkersRequest, SendContinuation], None]
LeaderOf = Callable[[str, int], int | None]
"""The leader of a partition; -1 while it has none, None when there is no such partition (any more)."""
NO_LEADER = -1
RETRY_MS = 50
MAX_IN_FLIGHT = 4
"""Requests under way to one leader; what comes meanwhile is gathered."""
MAX_MARKERS = 500
"""In one request."""


class Ending:
    """One decided transaction, until all its partitions have the marker."""

    __slots__ = ("coordinator_epoch", "is_cancelled", "remaining", "then", "transaction")

    def __init__(self, transaction: Transaction, coordinator_epoch: int, then: Callable[[], None]) -> None:
        self.transaction = transaction
        self.coordinator_epoch = coordinator_epoch
        self.remaining = set(transaction.partitions)
        self.then = then
        self.is_cancelled = False

    def cancel(self) -> None:
        """This node is not the coordinator any more, or was fenced."""
        self.is_cancelled = True


class MarkerSender:
    """All markers that this node has to send."""

    def __init__(self, outbox: Outbox, ask: Ask, leader_of: LeaderOf) -> None:
        self._outbox = outbox
        self._ask = ask
        self._leader_of = leader_of
        self._queues: dict[int, dict[Ending, set[TopicPartition]]] = {}
        """Markers that are not sent yet, by leader."""
        self._in_flight: dict[int, int] = {}
        self._is_scheduled = False

    def start(self, ending: Ending) -> None:
        """Send a transaction's markers; `ending.then` hears when all are written."""
        self._enqueue(ending, sorted(ending.remaining))

    def _enqueue(self, ending: Ending, partitions: list[TopicPartition]) -> None:
        if ending.is_cancelled:
            return
        leaderless = []
        for partition in partitions:
            leader = self._leader_of(*partition)
            if leader is None:
                ending.remaining.discard(partition)  # deleted: nobody will read it
            elif leader == NO_LEADER:
                leaderless.append(partition)
            else:
                self._queues.setdefault(leader, {}).setdefault(ending, set()).add(partition)
                self._schedule()
        if leaderless:
            self._retry(ending, leaderless)
        if not ending.remaining:
            ending.then()

    def _retry(self, ending: Ending, partitions: list[TopicPartition]) -> None:
        self._outbox.after(RETRY_MS, lambda: self._enqueue(ending, partitions))

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._outbox.at_end_of_step(self._send)

    def _send(self) -> None:
        self._is_scheduled = False
        for leader, queue in list(self._queues.items()):
            while queue and self._in_flight.get(leader, 0) < MAX_IN_FLIGHT:
                batch = [(ending, queue.pop(ending)) for ending in list(queue)[:MAX_MARKERS]]
                batch = [one for one in batch if not one[0].is_cancelled]
                if batch:
                    self._in_flight[leader] = self._in_flight.get(leader, 0) + 1
                    self._ask(leader, _request(batch), self._answered(leader, batch))
            if not queue:
                del self._queues[leader]

    def _answered(self, leader: int, batch: list[tuple[Ending, set[TopicPartition]]]) -> SendContinuation:
        def answered(response: Any, error: str | None) -> None:
            self._in_flight[leader] -= 1
            if not self._in_flight[leader]:
                del self._in_flight[leader]
            if error is not None:
                for ending, partitions in batch:
                    self._retry(ending, sorted(partitions))
            else:
                codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
                for marker in response.markers:
                    of_producer = codes.setdefault(marker.producer_id, {})
                    for topic in marker.topics:
                        for one in topic.partitions:
                            of_producer[topic.name, one.partition_index] = ErrorCode(one.error_code)
                for ending, partitions in batch:
                    self._settle(ending, partitions, codes.get(ending.transaction.producer_id, {}))
            if self._queues:
                self._schedule()

        return answered

    def _settle(self, ending: Ending, partitions: set[TopicPartition], codes: dict[TopicPartition, ErrorCode]) -> None:
        if ending.is_cancelled:
            return
        again = []
        for partition in sorted(partitions):
            code = codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code is ErrorCode.NONE:
                ending.remaining.discard(partition)
            elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                self._tell(ending, partition, code)
                ending.cancel()  # another coordinator has written there since: it ends what is left
                return
            elif code is ErrorCode.INVALID_PRODUCER_EPOCH:
                # The partition has seen a newer epoch, so this transaction is not open there any more.
                self._tell(ending, partition, code)
                ending.remaining.discard(partition)
            else:
                again.append(partition)
        if again:
            self._retry(ending, again)
        if not ending.remaining:
            ending.then()

    def _tell(self, ending: Ending, partition: TopicPartition, code: ErrorCode) -> None:
        self._outbox.tell(
            "transaction-marker-refused",
            "warning",
            transactional_id=ending.transaction.transactional_id,
            topic=partition[0],
            partition=partition[1],
            reason=code.name,
        )


def _request(batch: list[tuple[Ending, set[TopicPartition]]]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=ending.transaction.producer_id,
                producer_epoch=ending.transaction.producer_epoch,
                transaction_result=ending.transaction.is_commit,
                topics=_topics(partitions),
                coordinator_epoch=ending.coordinator_epoch,
                transaction_version=ending.transaction.client_version,
            )
            for ending, partitions in batch
        ]
    )


def _topics(partitions: set[TopicPartition]) -> list[WritableTxnMarkerTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return [WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in by_topic.items()]
