"""The committed metadata of a history, applied once more by somebody who is no node, to hold nodes against it."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import Partition
from tidelog.controller.image import TOPIC_RESOURCE, MetadataImage
from tidelog.controller.records import ClearElrRecord, RegisterBrokerRecord
from tidelog.quorum.batches import records_of
from tidelog.wire.batch import BatchHeader

MIN_ISR = "min.insync.replicas"


class Change(NamedTuple):
    """One partition's change by one record."""

    batch_offset: int
    quorum_epoch: int
    topic: str
    number: int
    before: Partition | None
    """None when it is new."""
    after: Partition
    min_isr: int
    """The topic's min.insync.replicas then."""
    registered: frozenset[int]
    """Brokers that registered anew in the same batch."""
    is_cleared: bool
    """The record clears ELRs because a setting changed, which follows other rules."""
    inactive: frozenset[int] = frozenset()
    """Brokers that were fenced or stopping after the batch."""

    @property
    def is_unclean(self) -> bool:
        """Whether its new leader was neither in sync nor eligible, nor came to be so by the end of a reassignment."""
        before, after = self.before, self.after
        if before is None or after.leader in (before.leader, -1):
            return False
        if before.is_reassigning and not after.is_reassigning:
            return False  # those who joined the ISR in this very change may lead
        return after.leader not in (*before.isr, *before.eligible_leader_replicas)

    @property
    def name(self) -> str:
        """The partition, for people."""
        return f"{self.topic}-{self.number}"


class Registration(NamedTuple):
    """A broker's registration, and what still counted on it once it was in force."""

    broker_id: int
    incarnation_id: bytes
    counted_on: tuple[str, ...]
    """Partitions that had it in the ISR or the ELR right after."""


class Replay:
    """Committed batches in their order, what they make of the image, and which partitions they changed."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.end_offset = 0
        self.images: dict[int, MetadataImage] = {}
        """The image by the offset after the batch that made it."""
        self.changes: list[Change] = []
        self.registrations: list[Registration] = []

    def feed(self, batch: BatchHeader) -> None:
        """Apply a batch that is committed and follows the last one."""
        assert batch.base_offset == self.end_offset, "a gap in the committed metadata"
        records = records_of(batch)
        registered = frozenset(one.broker_id for one in records if isinstance(one, RegisterBrokerRecord))
        known = len(self.changes)
        for record in records:
            delta = ImageDelta()
            self.image.apply(record, delta)
            is_cleared = isinstance(record, ClearElrRecord)
            for topic_id, partitions in delta.partitions.items():
                topic = self.image.topics.get(topic_id)
                for index, before in partitions.items() if topic is not None else ():
                    assert topic is not None
                    wanted = int(self.image.config(TOPIC_RESOURCE, topic.name).get(MIN_ISR, "1"))
                    self.changes.append(
                        Change(
                            batch.base_offset,
                            batch.partition_leader_epoch,
                            topic.name,
                            index,
                            before,
                            topic.partitions[index],
                            wanted,
                            registered,
                            is_cleared,
                        )
                    )
            if isinstance(record, RegisterBrokerRecord):
                counted_on = tuple(
                    f"{topic.name}-{index}"
                    for topic, index, one in self.image.partitions()
                    if record.broker_id in one.isr or record.broker_id in one.eligible_leader_replicas
                )
                self.registrations.append(Registration(record.broker_id, record.incarnation_id, counted_on))
        if len(self.changes) > known:
            inactive = frozenset(one for one, broker in self.image.brokers.items() if not broker.active)
            self.changes[known:] = [change._replace(inactive=inactive) for change in self.changes[known:]]
        self.end_offset = batch.next_offset
        self.images[self.end_offset] = (
            self.image.copy() if records else self.images.get(batch.base_offset, self.image.copy())
        )
