"""Asks the controller for ISR changes (KIP-497): many partitions in one request, one request under way at a time.

wanted -> in flight -> committed     the metadata says so, after all that it was decided by: the answer itself may come
                                     before a min.insync.replicas that was raised, by which the one that left is
                                     eligible (KIP-966) and the leader alone must commit nothing
                    -> ineligible    the proposal is dropped, and the ISR stays
                    -> refused       the leader goes on counting on the larger set until newer metadata comes: an
                                     earlier attempt, whose answer was lost, may be what was committed
                    -> unanswered    asked again after a pause
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tidelog.errors import ErrorCode
from tidelog.outbox import Outbox
from tidelog.replica.leadership import Leadership
from tidelog.replica.partition import Partition
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)

Ask = Callable[[int, int, Any, Callable[[Any, str | None], None]], None]
VERSION = 3
RETRY_MS = 50
INELIGIBLE_MS = 200
"""How long a follower that the controller did not want is not proposed again."""


class _Proposal(NamedTuple):
    """An ISR that a leader wants, however often it has to be asked for."""

    leadership: Leadership
    partition_epoch: int
    """Of the state that it was made for: in each there is one proposal at a time."""
    lives: dict[int, int]
    """Its members with their broker epochs: those in which they earned their places (KIP-903). Whoever was started
    again since, perhaps with less, must not slip in with what is known of its next life."""
    reason: str

    def is_current(self, partition: Partition) -> bool:
        """Whether the leader still wants this, and not nothing, or something that it has proposed since."""
        now = partition.leadership
        return now is self.leadership and now.partition_epoch == self.partition_epoch and now.proposed is not None


class IsrChanges:
    """Proposals of all partitions led here."""

    def __init__(
        self,
        node_id: int,
        outbox: Outbox,
        ask: Ask,
        broker_epoch: Callable[[int], int],
        own_epoch: Callable[[], int],
        settled: Callable[[Partition], None],
    ) -> None:
        self._node_id = node_id
        self._outbox = outbox
        self._ask = ask
        self._broker_epoch = broker_epoch
        """The epoch the metadata knows a broker by."""
        self._own_epoch = own_epoch
        self._settled = settled
        """Called when a proposal is settled: another follower may be waiting for its turn."""
        self._wanted: dict[Partition, _Proposal] = {}
        self._in_flight: dict[Partition, _Proposal] = {}
        self._scheduled = False

    def propose(self, partition: Partition, isr: Sequence[int], reason: str) -> None:
        """Ask for this ISR; until the answer the leader counts on the larger set. The reason is for people."""
        assert partition.leadership is not None
        leadership = partition.leadership
        leadership.proposed = tuple(isr)
        lives = {one: self._epoch_of(leadership, one) for one in isr}
        self._wanted[partition] = _Proposal(leadership, leadership.partition_epoch, lives, reason)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and not self._in_flight:
            self._scheduled = True
            self._outbox.at_end_of_step(self._send)

    def _send(self) -> None:
        self._scheduled = False
        wanted, self._wanted = self._wanted, {}
        topics: dict[bytes, AlterPartitionRequestTopicData] = {}
        for partition, proposal in wanted.items():
            if not proposal.is_current(partition):
                continue  # settled by newer metadata meanwhile
            topic = topics.setdefault(partition.topic_id, AlterPartitionRequestTopicData(topic_id=partition.topic_id))
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=proposal.leadership.epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=one, broker_epoch=self._own_epoch() if one == self._node_id else life)
                        for one, life in proposal.lives.items()
                    ],
                    partition_epoch=proposal.partition_epoch,
                    reason=proposal.reason,
                )
            )
            self._in_flight[partition] = proposal
        if not topics:
            return
        request = AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._own_epoch(), topics=list(topics.values())
        )
        self._ask(ApiKey.ALTER_PARTITION, VERSION, request, self._answered)

    def _epoch_of(self, leadership: Leadership, broker_id: int) -> int:
        """The life in which a broker fetched; as the metadata has it where it did not say."""
        follower = leadership.followers.get(broker_id)
        if follower is None or follower.broker_epoch < 0:
            return self._broker_epoch(broker_id)
        return follower.broker_epoch

    def _answered(self, response: Any, error: str | None) -> None:
        asked, self._in_flight = self._in_flight, {}
        if error is not None or response.error_code != ErrorCode.NONE:
            # STALE_BROKER_EPOCH and NOT_CONTROLLER pass when this broker has registered again or found the controller.
            self._outbox.after(RETRY_MS, lambda: self._ask_again(asked))
            return
        found = {
            (topic.topic_id, answer.partition_index): answer for topic in response.topics for answer in topic.partitions
        }
        again: dict[Partition, _Proposal] = {}
        for partition, proposal in asked.items():
            leadership = proposal.leadership
            answer = found.get((partition.topic_id, partition.index))
            if not proposal.is_current(partition):
                continue  # newer metadata has settled what was asked, and something else may be proposed since
            is_newer = answer is not None and answer.partition_epoch > proposal.partition_epoch
            if answer is None or answer.error_code == ErrorCode.NOT_CONTROLLER:
                again[partition] = proposal
            elif answer.error_code == ErrorCode.INELIGIBLE_REPLICA:
                # The controller knows the state that this was made for, so no attempt was committed (KIP-841).
                leadership.refused()
                partition.advance_high_watermark()
                # What made it so may be over already, and its news may have come while this was under way.
                self._outbox.after(INELIGIBLE_MS, lambda partition=partition: self._settled(partition))  # type: ignore[misc]
            elif answer.error_code == ErrorCode.NONE and not is_newer:
                leadership.proposed = None
            # Else what is true now is on its way with the metadata.
        if again:
            self._outbox.after(RETRY_MS, lambda: self._ask_again(again))
        if self._wanted:
            self._schedule()

    def _ask_again(self, proposals: dict[Partition, _Proposal]) -> None:
        for partition, proposal in proposals.items():
            if proposal.is_current(partition):
                self._wanted[partition] = proposal
        if self._wanted:
            self._schedule()
