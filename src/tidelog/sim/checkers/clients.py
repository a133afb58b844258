"""What clients were told, against what is there in the end."""

from __future__ import annotations

from itertools import pairwise

from tidelog.ledger import ACKNOWLEDGED, compare
from tidelog.sim.checkers.base import Checker
from tidelog.sim.consumer import Consumer
from tidelog.sim.producer import ALL


class AcknowledgedRecordsStay(Checker):
    """A record acknowledged to acks=all is in the log in the end, at the offset that was told."""

    def at_end(self) -> None:
        finals = {(topic, index): self.history.values(topic, index) for topic, index, _ in self.history.partitions()}
        for producer in self.history.producers:
            if producer.settings.acks != ALL:
                continue
            for entry in producer.ledger:
                if entry.outcome == ACKNOWLEDGED and not self.history.may_lose(entry.topic):
                    found = finals[entry.topic, entry.partition].get(entry.offset)
                    # A duplicate that is too old to be remembered is acknowledged without an offset.
                    if entry.offset < 0:
                        found = next((v for v in finals[entry.topic, entry.partition].values() if v == entry.value), "")
                    deleted_to = self.history.deleted_to.get((entry.topic, entry.partition), 0)
                    is_deleted = not found and 0 < deleted_to > entry.offset
                    if found != entry.value and not is_deleted:
                        raise self.violated(
                            f"{entry.value} was acknowledged at {entry.topic}-{entry.partition} offset {entry.offset}, "
                            f"where there is {found or 'nothing'} now"
                        )


class ReadRecordsStay(Checker):
    """What a consumer saw is there in the end, and nobody ever saw two values at one offset."""

    def at_end(self) -> None:
        for (topic, index), consumer in zip(self.history.shape.consumers, self.history.consumers, strict=True):
            if consumer.corruptions and not any(
                (one, topic, index) in self.history.rotten for one in self.history.cluster.brokers
            ):
                raise self.violated(f"{consumer.name} was sent damaged batches of {topic}-{index}")
            if self.history.may_lose(topic):
                continue
            if consumer.resets:
                raise self.violated(f"{consumer.name} had read more of {topic}-{index} than there was later")
            final = self.history.values(topic, index)
            for read in consumer.seen:
                if final.get(read.offset) != read.value and not (
                    read.offset not in final and read.offset < self.history.deleted_to.get((topic, index), 0)
                ):
                    raise self.violated(
                        f"{consumer.name} saw {read.value} at {topic}-{index} offset {read.offset} (node "
                        f"{read.node_id}), where there is {final.get(read.offset, 'nothing')} now"
                    )
            self._look_for_gaps(topic, index, consumer)

    def _look_for_gaps(self, topic: str, index: int, consumer: Consumer) -> None:
        """Everything was shown, in order, but for what had been deleted before the consumer came there."""
        offsets = [read.offset for read in consumer.seen]
        skipped = {offset for begin, end in consumer.skipped for offset in range(begin, end)}
        if max(skipped, default=-1) >= self.history.deleted_to.get((topic, index), 0):
            raise self.violated(f"{consumer.name} was told that {topic}-{index} begins later than anybody had wished")
        if offsets != [one for one in range(offsets[-1] + 1 if offsets else 0) if one not in skipped]:
            raise self.violated(f"{consumer.name} was given offsets of {topic}-{index} out of order or with gaps")
        final = self.history.values(topic, index)
        unseen = [offset for offset in final if offset not in skipped and (not offsets or offset > offsets[-1])]
        if unseen:
            raise self.violated(
                f"{consumer.name} was shown {len(offsets)} of {len(final)} records of {topic}-{index}, not {unseen[0]}"
            )


class ConsumersSeeWhatIsCommitted(Checker):
    """No answer to a consumer has records beyond the watermark that it names, whoever serves it (KIP-392)."""

    def at_end(self) -> None:
        for (topic, index), consumer in zip(self.history.shape.consumers, self.history.consumers, strict=True):
            for read in consumer.uncommitted:
                raise self.violated(
                    f"{consumer.name} was sent offset {read.offset} of {topic}-{index} by node {read.node_id}, which "
                    "did not know it to be committed"
                )


class EpochsAreFenced(Checker):
    """Whoever names a leader epoch gets no records of a later one, but an error that makes it ask anew (KIP-320)."""

    def at_end(self) -> None:
        for (topic, index), consumer in zip(self.history.shape.consumers, self.history.consumers, strict=True):
            for asked, read in consumer.misdirected:
                raise self.violated(
                    f"{consumer.name} asked node {read.node_id} for {topic}-{index} in leader epoch {asked} and was "
                    f"sent offset {read.offset} of epoch {read.epoch}"
                )


class LatestOffsetsNeverGoBack(Checker):
    """Whoever was told that a partition ends at an offset is never told less by a later leader (KIP-207)."""

    def at_end(self) -> None:
        for asker in self.history.askers:
            if self.history.may_lose(asker.topic):
                continue
            for (before, higher), (leader, offset) in pairwise(asker.told):
                if offset < higher:
                    raise self.violated(
                        f"{asker.topic}-{asker.index}: node {leader} told {offset} as the latest offset, after node "
                        f"{before} had told {higher}"
                    )


class IdempotentLogsHaveNoDuplicate(Checker):
    """An idempotent producer's records are in the log once, in the order they were handed over."""

    def at_end(self) -> None:
        for producer in self.history.producers:
            entries = producer.ledger
            if not producer.settings.enable_idempotence or any(one.outcome != ACKNOWLEDGED for one in entries):
                continue  # one that gave a record up went on as another producer: Kafka promises nothing across that
            for topic, index, _ in self.history.partitions():
                if self.history.may_lose(topic):
                    continue
                own = [one for one in entries if (one.topic, one.partition) == (topic, index)]
                mine = {one.value for one in own}
                values = [value for _, value in sorted(self.history.values(topic, index).items()) if value in mine]
                found = compare(own, values)
                if found.duplicated or found.reordered:
                    raise self.violated(
                        f"{producer.name} in {topic}-{index}: twice {list(found.duplicated)[:3]}, out of order "
                        f"{list(found.reordered)[:3]}"
                    )
