"""Read partitions from given offsets: one long poll a leader, following leaders as they change.

Positions move when an answer arrives, by the headers of its batches alone, so that the next request is on its way
while the records of the last one are decoded.
"""

from __future__ import annotations

import select
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count, groupby
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.client import Client, TopicPartition
from tidelog.client.connection import Connection
from tidelog.client.offsets import list_offsets
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.batch import BatchHeader, ControlType, check_crc, control_type, iterate_batches, iterate_records
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tidelog.wire.uuids import ZERO_UUID

_BY_NAME = 12
"""The last version of Fetch that names topics by name; later ones use ids (KIP-516)."""
_METADATA_MAX_AGE_MS = 300_000
"""As metadata.max.age.ms of other clients: a leader that is cut off from the cluster answers, and knows of no other."""
_LOOK_AGAIN_MS = 1_000
_numbers = count(1)


class ConsumedRecord(NamedTuple):
    """A record and where it was."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Fetched(NamedTuple):
    """What one partition answered: whole batches, the first of which may begin before `first_offset`."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    batches: memoryview
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    """Producer id and first offset of transactions to be skipped by a reader of committed records."""


class _InFlight(NamedTuple):
    connection: Connection
    asked: dict[TopicPartition, int]
    """The offset each partition was asked from."""


class Consumer:
    """Reads any number of partitions, each from its own position."""

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 52_428_800,
        partition_max_bytes: int = 1_048_576,
        reset: int | None = None,
        rack: str = "",
    ) -> None:
        """`reset` (EARLIEST or LATEST) is where to go on when a position is gone; None raises OFFSET_OUT_OF_RANGE."""
        self.positions = dict(positions)
        """The next offset of each partition; assign to seek."""
        self.ends: dict[TopicPartition, int] = {}
        """Partitions that are read no further than here."""
        self._client = client
        self._read_committed = read_committed
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._reset = reset
        self._rack = rack
        self._near: dict[TopicPartition, int] = {}
        """The replica that a leader sent us to (KIP-392)."""
        self._channel = f"fetch {next(_numbers)}"
        """Its own: an answer that one reader left behind must not be taken for another's."""
        weakref.finalize(self, client.close_channel, self._channel)
        self._in_flight: dict[int, _InFlight] = {}
        self._failure: KafkaError | None = None
        self._refusal: KafkaError | None = None
        """Came beside records that had to be delivered first; raised by the next `fetch`."""
        self._patience = Deadline(client.timeout_ms)
        """Starts with the first failure after a good answer: one waits for ever for records, but not for a leader."""
        self._is_failing = False
        self._is_current = Deadline(_METADATA_MAX_AGE_MS)
        client.refresh({topic for topic, _ in positions})

    # --- records ---

    def poll(self, timeout_ms: int) -> list[ConsumedRecord]:
        """The records of the next answers; empty when none came in time."""
        return [record for fetched in self.fetch(timeout_ms) for record in self.decode(fetched)]

    def read_until(self, ends: Mapping[TopicPartition, int]) -> Iterator[ConsumedRecord]:
        """Every record up to the offset given for its partition, then stop."""
        self.ends = dict(ends)
        while any(position < self.ends.get(where, 0) for where, position in self.positions.items()):
            for fetched in self.fetch(self._max_wait_ms):
                for record in self.decode(fetched):
                    if record.offset < self.ends[record.topic, record.partition]:
                        yield record

    def decode(self, fetched: Fetched) -> Iterator[ConsumedRecord]:
        """The records of an answer, without control records and, for a reader of committed records, aborted ones."""
        topic, partition = fetched.topic, fetched.partition
        for batch in self._visible(fetched):
            for record in iterate_records(batch):
                if record.offset >= fetched.first_offset:
                    place = (topic, partition, record.offset, record.timestamp)
                    yield ConsumedRecord(*place, record.key, record.value, list(record.headers))

    def _visible(self, fetched: Fetched) -> Iterator[BatchHeader]:
        aborted = sorted(fetched.aborted, key=lambda one: one[1], reverse=True)
        aborting: set[int] = set()
        for batch in iterate_batches(fetched.batches, allow_partial=True):
            check_crc(batch)
            while aborted and aborted[-1][1] <= batch.last_offset:
                aborting.add(aborted.pop()[0])
            if batch.is_control:
                if any(control_type(record.key) == ControlType.ABORT for record in iterate_records(batch)):
                    aborting.discard(batch.producer_id)
            elif not (self._read_committed and batch.is_transactional and batch.producer_id in aborting):
                yield batch

    # --- fetching ---

    def fetch(self, timeout_ms: int) -> list[Fetched]:
        """The next answers as they came, each only once; empty when none came in time."""
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise refusal
        deadline = Deadline(timeout_ms)
        if self._is_current.passed:
            self._look_again()
        while True:
            self._send()
            if self._failure is None and not self._in_flight:
                return []  # every partition is at its end
            # With a failure to see to, only what has arrived already is taken.
            answered = self._wait(deadline.remaining_ms if self._failure is None else 0)
            answers: list[Fetched] = []
            try:
                for leader in answered:
                    self._receive(leader, answers)
                if answers:
                    self._send()
            except KafkaError as error:
                if not answers:
                    raise
                self._refusal = error  # positions have moved: whoever goes on after it must not miss these
            if answers:
                return answers
            if self._failure is not None:
                failure, self._failure = self._failure, None
                if not self._is_failing:  # whoever reads may have been busy with records for longer than any patience
                    self._is_failing = True
                    self._patience.progress()
                self._patience.pause(failure)
                self._refresh()
            if deadline.passed:
                return []

    def _send(self) -> None:
        """Ask every leader that is not being asked for all the partitions wanted of it."""
        wanted: dict[int, dict[TopicPartition, int]] = {}
        for where, position in self.positions.items():
            if position >= self.ends.get(where, 1 << 63):
                continue
            try:
                leader = self._near.get(where, -1)
                if leader not in self._client.metadata.brokers:
                    leader = self._client.metadata.leader_of(*where).leader
            except KafkaError as error:
                self._failure = error
                continue
            if leader not in self._in_flight:
                wanted.setdefault(leader, {})[where] = position
        for leader, asked in wanted.items():
            try:
                connection = self._client.connect(leader, Deadline(self._client.timeout_ms), self._channel)
                connection.send(*self._request(connection, asked), self._client.timeout_ms)
                self._in_flight[leader] = _InFlight(connection, asked)
            except KafkaError as error:
                self._lost(leader, asked, error)

    def _request(self, connection: Connection, asked: Mapping[TopicPartition, int]) -> tuple[FetchRequest, int]:
        topics = []
        metadata = self._client.metadata
        for topic, group in groupby(sorted(asked), key=lambda where: where[0]):
            view = metadata.topics[topic]
            partitions = [
                FetchPartition(
                    partition=partition,
                    fetch_offset=asked[topic, partition],
                    current_leader_epoch=view.partitions[partition].leader_epoch,
                    partition_max_bytes=self._partition_max_bytes,
                )
                for _, partition in group
            ]
            topics.append(FetchTopic(topic=topic, topic_id=view.topic_id, partitions=partitions))
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=int(self._read_committed),
            topics=topics,
            rack_id=self._rack,
        )
        has_ids = all(topic.topic_id != ZERO_UUID for topic in topics)
        return request, connection.version_of(FetchRequest, None if has_ids else _BY_NAME)

    def _wait(self, timeout_ms: int) -> list[int]:
        """Leaders whose answer has begun to arrive."""
        by_socket = {in_flight.connection.fileno(): leader for leader, in_flight in self._in_flight.items()}
        if not by_socket:
            return []
        poller = select.poll()  # `select` takes no descriptor from 1024 on
        for descriptor in by_socket:
            poller.register(descriptor, select.POLLIN)
        return [by_socket[descriptor] for descriptor, _ in poller.poll(timeout_ms)]

    def _receive(self, leader: int, answers: list[Fetched]) -> None:
        connection, asked = self._in_flight.pop(leader)
        try:
            answer: FetchResponse = connection.receive(self._client.timeout_ms)
        except KafkaError as error:
            self._lost(leader, asked, error)
            return
        if answer.error_code:
            self._failure = error_of(answer.error_code)
            return
        for topic in answer.responses:
            name = topic.topic or self._client.metadata.topic_named_by(topic.topic_id)
            for data in topic.partitions:
                where = (name or "", data.partition_index)
                if where in asked and self.positions.get(where) == asked[where]:
                    fetched = self._take(where, data, answer)
                    if fetched is not None:
                        answers.append(fetched)

    def _take(self, where: TopicPartition, data: Any, answer: FetchResponse) -> Fetched | None:
        if data.error_code:
            self._refused(where, data, answer)
            return None
        self._is_failing = False
        if data.preferred_read_replica >= 0:
            self._near[where] = data.preferred_read_replica
        records = memoryview(data.records if data.records is not None else b"")
        position = self.positions[where]
        following = position
        for batch in iterate_batches(records, allow_partial=True):
            following = batch.next_offset
        if following <= position:
            if records:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where[0]}-{where[1]}: no whole batch at {position}")
            return None
        self.positions[where] = following
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        return Fetched(
            *where,
            position,
            following,
            records,
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
            aborted,
        )

    def _refused(self, where: TopicPartition, data: Any, answer: FetchResponse) -> None:
        error = error_of(data.error_code, f"partition {where[0]}-{where[1]} at offset {self.positions[where]}")
        was_near = self._near.pop(where, None) is not None
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and not was_near:
            if self._reset is None:
                raise error
            found = list_offsets(self._client, {where: self._reset}, read_committed=self._read_committed)
            self.positions[where] = found[where].offset
        elif was_near or self._client.metadata.take_leader_hint(*where, data.current_leader, answer.node_endpoints):
            return  # asked again at once: of the leader, or of the new one
        elif error.code.retriable:
            self._failure = error
        else:
            raise error

    def _lost(self, leader: int, asked: Mapping[TopicPartition, int], error: KafkaError) -> None:
        if not (error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE):
            raise error
        for where in asked:
            self._near.pop(where, None)
        self._failure = error

    def _refresh(self) -> None:
        self._is_current = Deadline(_METADATA_MAX_AGE_MS)
        self._client.turn_elsewhere()
        self._client.refresh({topic for topic, _ in self.positions}, deadline=self._patience)

    def _look_again(self) -> None:
        """Who leads, and from there who is near (KIP-392), though nothing failed; when nobody tells, all stays."""
        self._is_current = Deadline(_METADATA_MAX_AGE_MS)
        self._near.clear()
        self._client.turn_elsewhere()
        with suppress(KafkaError):
            self._client.refresh({topic for topic, _ in self.positions}, deadline=Deadline(_LOOK_AGAIN_MS))
