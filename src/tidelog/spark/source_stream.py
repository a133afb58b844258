"""`spark.readStream.format("tidelog")`: from offset to offset, as the checkpoint keeps them.

An offset in the checkpoint is the official source's JSON, {"topic": {"0": 23}}, and beside the topics their ids: a
topic that was deleted and created again has another one, and its records from 0 on are not those after 23. And the
leader epochs of what was read: by them a log that was cut below it, and has grown again, is told (source_epochs.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidelog.errors import ErrorCode, KafkaError
from tidelog.spark.fetching import DataLossError
from tidelog.spark.options import SourceOptions
from tidelog.spark.source import read_ranges
from tidelog.spark.source_limits import bytes_an_offset, limit_bytes, limit_offsets
from tidelog.spark.source_ranges import plan_tasks
from tidelog.spark.source_schema import SOURCE_COLUMNS, check_schema
from tidelog.wire.uuids import ZERO_UUID, to_text

if TYPE_CHECKING:
    from tidelog.spark.source_offsets import SourceCluster

Partition = tuple[str, int]
Offset = dict[str, Any]
TOPIC_IDS = "#topicIds"
LEADER_EPOCHS = "#leaderEpochs"
"""No topic can have these names."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of its own beside the driver as long as the query does; `read` runs in the executors."""

    def __init__(self, options: Mapping[str, str], schema: StructType, parallelism: int) -> None:
        self.options = SourceOptions.parse(options)
        self.options.for_stream()
        check_schema(schema, SOURCE_COLUMNS)
        self.schema = schema
        self.parallelism = parallelism
        self._asked: SourceCluster | None = None
        self._target: dict[Partition, int] | None = None
        """Where a query ends that reads what is there now (AvailableNow)."""
        self._latest: Offset | None = None
        self._has_planned = False
        self._committed: dict[Partition, int] = {}
        self._last_batch_at: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Connections stay where they are."""
        return self.__dict__ | {"_asked": None}

    @property
    def _cluster(self) -> SourceCluster:
        if self._asked is None:
            from tidelog.spark.source_offsets import SourceCluster

            self._asked = SourceCluster(self.options)
        return self._asked

    # --- offsets ---

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        partitions = self._cluster.partitions()
        return self._offset(self._cluster.resolve(self.options.for_stream(), partitions, is_start=True))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Spark knows one limit at a time: this tells it that there is one, and `latestOffset` applies them all."""
        options = self.options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember where the partitions end now."""
        self._target = self._cluster.latest(self._cluster.partitions())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Where the next batch ends; `start` itself when there is nothing to read yet."""
        self._report_progress(offsets_of(start))
        starts, ends, epochs = self._available(start)
        self._latest = self._offset(ends, self._epochs_at(start, ends, epochs))
        if not isinstance(limit, ReadAllAvailable):
            ends = self._limited(starts, ends)
        found = self._offset(ends, self._epochs_at(start, ends, epochs))
        if found != start:
            self._last_batch_at = time.monotonic()
        return found

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """Where the partitions ended when last asked, for the query's progress."""
        return self._latest

    def _available(self, start: Offset) -> tuple[dict[Partition, int], dict[Partition, int], dict[Partition, int]]:
        """Where all partitions of now begin and end for this query, and the leader epochs of the ends.

        New ones begin with their first record, and those that were cut below what was read, where they were cut.
        """
        cluster = self._cluster
        partitions = cluster.partitions(missing="leave out")
        begun = self._still_valid(start, partitions)
        if self._target is not None:
            partitions = [where for where in partitions if where in self._target]
        new = [where for where in partitions if where not in begun]
        found = cluster.ends(partitions)
        epochs = {where: end.leader_epoch for where, end in found.items()}
        latest = {where: end.offset for where, end in found.items()}
        known = epochs_of(start)
        suspects = [
            where for where in begun if latest.get(where, 0) < begun[where] or epochs.get(where) != known.get(where)
        ]
        begun |= self._cuts({where: begun[where] for where in suspects if where in latest}, known)
        starts = begun | (self._beginnings(new) if new else {})
        if self._target is not None:
            latest = {where: min(end, self._target[where]) for where, end in latest.items()}
        # After an election a leader may know less of what is committed than the last one did: it is not gone, it comes.
        return starts, {where: max(begin, latest.get(where, begin)) for where, begin in starts.items()}, epochs

    def _epochs_at(
        self, start: Offset, ends: Mapping[Partition, int], now: Mapping[Partition, int]
    ) -> dict[Partition, int]:
        """The leader epochs of the ends; a partition that did not move keeps what is said of it, and Spark rests."""
        before, known = offsets_of(start), epochs_of(start)
        return {
            where: known.get(where, -1)
            if before.get(where) == end and not self._is_another(start, where[0])
            else now[where]
            for where, end in ends.items()
            if where in now
        }

    def _limited(self, starts: dict[Partition, int], ends: dict[Partition, int]) -> dict[Partition, int]:
        options = self.options
        total = sum(ends[where] - starts[where] for where in ends)
        if self._must_wait(total):
            return starts
        if options.max_offsets_per_trigger is not None:
            ends = limit_offsets(starts, ends, options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            sizes = bytes_an_offset(self._cluster.client, starts, ends)
            ends = limit_bytes(starts, ends, sizes, options.max_bytes_per_trigger)
        return ends

    def _must_wait(self, total: int) -> bool:
        """Whether there is too little for a batch and the last was not long ago. AvailableNow waits for nothing."""
        smallest = self.options.min_offsets_per_trigger
        if smallest is None or total >= smallest or self._target is not None or self._last_batch_at is None:
            return False
        return (time.monotonic() - self._last_batch_at) * 1000 < self.options.max_trigger_delay_ms

    # --- what changed since ---

    def _still_valid(self, start: Offset, partitions: list[Partition]) -> dict[Partition, int]:
        """The offsets of `start` that still mean something; those that do not are data loss."""
        cluster = self._cluster
        begun = offsets_of(start)
        present = set(partitions)
        for topic in sorted({topic for topic, _ in begun}):
            if self._is_another(start, topic):
                self._lost(f"topic {topic} was deleted and created again under the same name")
                begun = {where: offset for where, offset in begun.items() if where[0] != topic}
        for where in sorted(set(begun) - present):
            if not self._is_there(where):
                self._lost(f"{where[0]}-{where[1]} was read up to offset {begun[where]} and is not there any more")
                del begun[where]
            elif not self.options.assign and where[0] not in {topic for topic, _ in present}:
                # Not subscribed to any more, by another pattern or list under the same checkpoint: nothing is lost.
                del begun[where]
        return {where: offset for where, offset in begun.items() if cluster.client.metadata.topics.get(where[0])}

    def _is_another(self, start: Offset, topic: str) -> bool:
        before = start.get(TOPIC_IDS, {}).get(topic)
        now = self._cluster.topic_id(topic)
        return before is not None and now != ZERO_UUID and to_text(now) != before

    def _is_there(self, where: Partition) -> bool:
        """Asked again, with patience: a broker that has just started may not know every topic yet."""
        try:
            return where[1] in self._cluster.client.topic(where[0]).partitions
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False

    def _is_still_there(self, where: Partition, topic_ids: Mapping[str, str]) -> bool:
        """Of a batch that is planned again: its new partitions may have come and gone since."""
        if self._is_there(where) and not self._is_another({TOPIC_IDS: topic_ids}, where[0]):
            return True
        self._lost(f"{where[0]}-{where[1]} was new and is not there any more")
        return False

    def _beginnings(self, new: list[Partition]) -> dict[Partition, int]:
        found = self._cluster.earliest(new)
        for (topic, partition), offset in sorted(found.items()):
            if offset > 0:
                self._lost(f"{topic}-{partition} is new and begins at {offset}: its first records are deleted already")
        return found

    def _cuts(self, reached: Mapping[Partition, int], epochs: Mapping[Partition, int]) -> dict[Partition, int]:
        """Where logs were cut below what was reached, which is data loss: what stands there now was never read."""
        from tidelog.spark.source_epochs import cut_offsets

        cuts = cut_offsets(self._cluster.client, reached, epochs)
        for where, cut in sorted(cuts.items()):
            name, offset = f"{where[0]}-{where[1]}", reached[where]
            self._lost(f"{name} was cut back to offset {cut} when it had been read up to {offset}")
        return cuts

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(f"data loss: {what}; failOnDataLoss=false goes on with what is there")
        print(f"tidelog: data loss: {what}; going on, as failOnDataLoss=false says", file=sys.stderr)

    # --- batches ---

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of one batch, of which a query that starts again may ask a second time."""
        begun = offsets_of(start)
        ends = offsets_of(end)
        before, after = start.get(TOPIC_IDS, {}), end.get(TOPIC_IDS, {})
        for where in list(begun):
            if where[0] in after and before.get(where[0], after[where[0]]) != after[where[0]]:
                del begun[where]
        cluster = self._cluster
        if not cluster.client.metadata.topics:
            cluster.partitions(missing="leave out")
        self._cut_again(start, end, begun)
        new = [where for where in ends if where not in begun and self._is_still_there(where, after)]
        starts = begun | (self._beginnings(new) if new else {})
        ends = {where: offset for where, offset in ends.items() if where in starts}
        return list(
            plan_tasks(
                cluster.ranges(starts, ends, after, epochs_of(end)),
                parallelism=self.parallelism,
                min_partitions=self.options.min_partitions,
                max_records=self.options.max_records_per_partition,
            )
        )

    def _cut_again(self, start: Offset, end: Offset, begun: dict[Partition, int]) -> None:
        """Let a batch begin where `latestOffset` found the log to be cut; the first may have been planned long ago."""
        before, after, metadata = epochs_of(start), epochs_of(end), self._cluster.client.metadata
        ends = {where: offset for where, offset in offsets_of(end).items() if metadata.knows(*where)}
        ends = {where: offset for where, offset in ends.items() if not self._is_another(end, where[0])}
        moved = [where for where in begun if where in ends and before.get(where) != after.get(where)]
        begun |= self._cuts({where: begun[where] for where in moved}, before)
        if not self._has_planned:
            self._cuts(ends, after)
        self._has_planned = True

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In an executor: the records of one task."""
        return read_ranges(self.options, self.schema, partition)

    def commit(self, end: Offset) -> None:
        """A batch is done."""
        self._report_progress(offsets_of(end))

    def stop(self) -> None:
        """The query ends."""
        if self._asked is not None:
            self._asked.close()

    def _report_progress(self, done: dict[Partition, int]) -> None:
        """Commit what is processed as the group's offsets, for whoever looks at lag. The checkpoint is what counts.

        Spark tells of the end of a batch only when the next one begins; that the next offset is asked for tells it too.
        """
        if self.options.group_id is None or done == self._committed:
            return
        from tidelog.client.groups import commit_offsets

        try:
            commit_offsets(self._cluster.client, self.options.group_id, done)
            self._committed = done
        except KafkaError as error:
            print(f"tidelog: offsets of group {self.options.group_id} are not committed: {error}", file=sys.stderr)

    def _offset(self, offsets: Mapping[Partition, int], epochs: Mapping[Partition, int] | None = None) -> Offset:
        """As the checkpoint has it, sorted: Spark compares texts."""
        found = _by_topic(offsets)
        ids = {topic: to_text(self._cluster.topic_id(topic)) for topic in found}
        known = {where: epoch for where, epoch in (epochs or {}).items() if where in offsets and epoch >= 0}
        return found | {TOPIC_IDS: ids} | ({LEADER_EPOCHS: _by_topic(known)} if known else {})


def _by_topic(numbers: Mapping[Partition, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (topic, partition), number in sorted(numbers.items()):
        found.setdefault(topic, {})[str(partition)] = number
    return found


def offsets_of(offset: Offset) -> dict[Partition, int]:
    """An offset of the checkpoint as (topic, partition) -> offset."""
    return {
        (topic, int(partition)): position
        for topic, partitions in offset.items()
        if topic not in (TOPIC_IDS, LEADER_EPOCHS)
        for partition, position in partitions.items()
    }


def epochs_of(offset: Offset) -> dict[Partition, int]:
    """The leader epochs that an offset of the checkpoint names; one of the official source's names none."""
    return offsets_of(offset.get(LEADER_EPOCHS, {}))
