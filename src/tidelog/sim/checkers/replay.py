"""The committed metadata of a history, applied once more by somebody who is no node, to hold nodes against it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import Partition
from tidelog.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from tidelog.controller.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tidelog.quorum.batches import records_of
from tidelog.wire.batch import BatchHeader

MIN_ISR = "min.insync.replicas"
BROKER_RECORDS = (BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord)


def min_isr_of(image: MetadataImage, topic: str) -> int:
    """min.insync.replicas in force for a topic, as an image has it."""
    own = image.config(TOPIC_RESOURCE, topic).get(MIN_ISR)
    return int(own if own is not None else image.config(BROKER_RESOURCE, "").get(MIN_ISR, "1"))


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
    """Brokers that registered anew in the same decision."""
    is_cleared: bool
    """The record clears ELRs because a setting changed, which follows other rules."""
    inactive: frozenset[int] = frozenset()
    """Brokers that were fenced or stopping, or gone, before or after the decision."""
    offline: frozenset[int] = frozenset()
    """Replicas in log directories that had failed, before or after the decision."""
    is_restored: bool = False
    """What the record cleared is put back in the same decision."""

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
        begin, inactive = len(self.changes), self._inactive()
        cleared: dict[tuple[bytes, int], tuple[int, Partition]] = {}
        for record in records:
            delta = ImageDelta()
            self.image.apply(record, delta)
            is_cleared = isinstance(record, ClearElrRecord)
            for topic_id, partitions in delta.partitions.items():
                topic = self.image.topics.get(topic_id)
                for index, before in partitions.items() if topic is not None else ():
                    assert topic is not None
                    if is_cleared:
                        assert before is not None
                        cleared[topic_id, index] = (len(self.changes), before)
                    elif (topic_id, index) in cleared:
                        place, former = cleared.pop((topic_id, index))
                        if _is_same_but_for_epochs(former, topic.partitions[index]):
                            before = former  # by both together nothing changed
                            self.changes[place] = self.changes[place]._replace(is_restored=True)
                    self.changes.append(
                        Change(
                            batch.base_offset,
                            batch.partition_leader_epoch,
                            topic.name,
                            index,
                            before,
                            topic.partitions[index],
                            min_isr_of(self.image, topic.name),
                            frozenset(),
                            is_cleared,
                            inactive,
                            self._offline(topic.partitions[index]),
                        )
                    )
            if isinstance(record, BROKER_RECORDS):
                begin, inactive = self._broker_changed(record, begin, inactive)
            if isinstance(record, RegisterBrokerRecord):
                counted_on = tuple(
                    f"{topic.name}-{index}"
                    for topic, index, one in self.image.partitions()
                    if record.broker_id in one.isr or record.broker_id in one.eligible_leader_replicas
                )
                self.registrations.append(Registration(record.broker_id, record.incarnation_id, counted_on))
        self.end_offset = batch.next_offset
        self.images[self.end_offset] = (
            self.image.copy() if records else self.images.get(batch.base_offset, self.image.copy())
        )

    def _broker_changed(self, record: Any, begin: int, inactive: frozenset[int]) -> tuple[int, frozenset[int]]:
        """Note at the changes since `begin` what was decided with them; where the next begin, and who is inactive then.

        A batch has every decision of a step, and a broker may be fenced and back within it. What is decided with the
        record of a broker is before it when the broker goes, and after it when the broker comes.
        """
        now = self._inactive()
        gone = frozenset((record.broker_id,)) - self.image.brokers.keys()
        registered = frozenset((record.broker_id,) if isinstance(record, RegisterBrokerRecord) else ())
        self.changes[begin:] = [
            change._replace(
                inactive=inactive | now | gone,
                registered=registered,
                offline=change.offline | self._offline(change.after),
            )
            for change in self.changes[begin:]
        ]
        return len(self.changes), now

    def _inactive(self) -> frozenset[int]:
        return frozenset(one for one, broker in self.image.brokers.items() if not broker.active)

    def _offline(self, partition: Partition) -> frozenset[int]:
        """The replicas of a partition whose log directory their broker has not, or no longer."""
        return frozenset(
            replica
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
            if (broker := self.image.brokers.get(replica)) is not None and not broker.has_online(directory)
        )


def _is_same_but_for_epochs(one: Partition, other: Partition) -> bool:
    """Whether the same brokers are in sync, eligible, and last known as leaders."""
    return (one.leader, one.isr, one.eligible_leader_replicas, one.last_known_elr) == (
        other.leader,
        other.isr,
        other.eligible_leader_replicas,
        other.last_known_elr,
    )
