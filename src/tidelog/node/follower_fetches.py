"""What a leader concludes from a fetch of a follower: what it has, and so who is in sync and what is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.replica.fetch_sessions import FetchSession
from tidelog.replica.partition import Partition

if TYPE_CHECKING:
    from tidelog.node.node import Node


class FollowerFetch:
    """Who fetches, in which of its lives; -1 where it does not say (KIP-903)."""

    __slots__ = ("_broker_epoch", "_node", "broker_id")

    def __init__(self, node: Node, broker_id: int, broker_epoch: int) -> None:
        self._node = node
        self.broker_id = broker_id
        self._broker_epoch = broker_epoch

    @property
    def is_of_former_life(self) -> bool:
        """Whether the broker has been started again since: what that one has is not what this one says."""
        return 0 <= self._broker_epoch < self._node.epoch_of_broker(self.broker_id)

    def check(self, partition: Partition) -> None:
        """Refuse who is no follower here, or no longer the one that is."""
        partition.check_follower(self.broker_id)
        if self.is_of_former_life:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "that broker was started again since")

    def note(self, session: FetchSession, topics: list[Any], by_id: bool) -> None:
        """What it asks for tells what it has: the ISR and the watermark may move."""
        said_before, session.to_note = session.to_note, {}
        if self.is_of_former_life:
            return
        for topic in topics:
            for wanted in topic.partitions:
                name = self._node.topic_name_or_empty(topic.topic_id) if by_id else topic.topic
                partition = self._node.replicas.partitions.get((name, wanted.partition))
                if partition is not None:
                    self._note_one(session, partition, wanted, wanted.partition_max_bytes)
        for entry in said_before:
            if entry.partition is not None:
                self._note_one(session, entry.partition, entry, entry.max_bytes)

    def _note_one(self, session: FetchSession, partition: Partition, wanted: Any, max_bytes: int) -> None:
        if partition.leadership is None:
            return
        try:
            partition.check_epoch(wanted.current_leader_epoch)
            if wanted.last_fetched_epoch >= 0 and partition.diverging_epoch(
                wanted.last_fetched_epoch, wanted.fetch_offset, wanted.log_start_offset
            ):
                return  # what it has past the parting is not what we have: it counts for nothing
            if not partition.log.log_start_offset <= wanted.fetch_offset <= partition.log.log_end_offset:
                return
            self._check_what_was_refused(partition, wanted.fetch_offset, max_bytes)
            isr = partition.follower_fetched(
                self.broker_id, self._broker_epoch, session, wanted.fetch_offset, wanted.log_start_offset
            )
        except KafkaError:
            return  # the read that follows answers with the code
        if isr is not None:
            self._node.replicas.propose_growth(partition, isr)

    def _check_what_was_refused(self, partition: Partition, fetch_offset: int, max_bytes: int) -> None:
        """A follower that asks again for what it was sent may have found it damaged: so it is looked at here.

        What leaves here is not looked at, and followers never append what they cannot prove.
        """
        replicas, leadership = self._node.replicas, partition.leadership
        progress = None if leadership is None else leadership.followers.get(self.broker_id)
        if progress is not None and progress.sent_offset == fetch_offset:
            why = f"node {self.broker_id} refused it"
            if replicas.look_for_damage(partition, fetch_offset, max_bytes, why):
                replicas.on_refusal(partition)
