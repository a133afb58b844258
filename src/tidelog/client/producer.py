"""Write records: batches by partition, one in flight for each, so that order holds through every retry."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Self

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.client import Client, TopicPartition
from tidelog.client.connection import Connection
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.batch import Compression, Record, build_batch
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.wire.murmur2 import partition_for_key
from tidelog.wire.uuids import ZERO_UUID

ALL = -1
_BY_NAME = 12
"""The last version of Produce that names topics by name; later ones use ids (KIP-516)."""
_MAX_SEQUENCE = 0x7FFFFFFF
_RECORD_OVERHEAD_BYTES = 24
_REQUEST_BYTES = 8_000_000
"""A request takes no further batch beyond this, well below a broker's socket.request.max.bytes."""

Headers = Sequence[tuple[str, bytes | None]]


class Delivery(NamedTuple):
    """A batch that was acknowledged; `base_offset` is -1 where the broker did not say (acks=0, a repeated batch)."""

    topic: str
    partition: int
    base_offset: int
    record_count: int
    log_append_time_ms: int


class _Batch:
    """Records of one partition that travel together, with the same bytes at every try."""

    __slots__ = ("base_sequence", "data", "records", "where")

    def __init__(self, where: TopicPartition, records: list[Record], base_sequence: int) -> None:
        self.where = where
        self.records = records
        self.base_sequence = base_sequence
        self.data: bytes | None = None


class Producer:
    """Collects records and sends them when there is a batch of them, or at `flush`."""

    def __init__(
        self,
        client: Client,
        *,
        acks: int = ALL,
        compression: str = "none",
        idempotent: bool = False,
        batch_bytes: int = 500_000,
        buffer_bytes: int = 16_000_000,
        create_topics: bool = True,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        if acks not in (ALL, 0, 1):
            raise ConfigError(f"acks: {acks} is not one of all, 1, 0")
        if idempotent and acks != ALL:
            raise ConfigError("acks: an idempotent producer needs all")
        try:
            self._compression = Compression[compression.upper()]
        except KeyError:
            known = ", ".join(kind.name.lower() for kind in Compression)
            raise ConfigError(f"compression: {compression!r} is not one of {known}") from None
        self._client = client
        self._acks = acks
        self._idempotent = idempotent
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._create_topics = create_topics
        self._on_delivery = on_delivery
        self._open: dict[TopicPartition, list[Record]] = {}
        self._open_bytes: dict[TopicPartition, int] = {}
        self._pending: dict[TopicPartition, deque[_Batch]] = {}
        self._buffered_bytes = 0
        self._sticky: dict[str, int] = {}
        """Where keyless records of a topic go until the next batch: full batches beat an even spread (KIP-480)."""
        self._sequences: dict[TopicPartition, int] = {}
        self._producer: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> None:
        """Take a record. Whatever an earlier one met may be raised here, since this may send."""
        where = (topic, self._choose(topic, key, partition))
        records = self._open.setdefault(where, [])
        stamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        records.append(Record(len(records), stamp, key, value, headers))
        size = len(value or b"") + len(key or b"") + _RECORD_OVERHEAD_BYTES + 40 * len(headers)
        self._open_bytes[where] = self._open_bytes.get(where, 0) + size
        self._buffered_bytes += size
        if self._open_bytes[where] >= self._batch_bytes:
            self._seal(where)
        if self._buffered_bytes >= self._buffer_bytes:
            self.flush()

    def flush(self) -> None:
        """Send everything and wait for the answers; the first error that cannot be retried is raised."""
        for where in list(self._open):
            self._seal(where)
        self._buffered_bytes = 0
        deadline = Deadline(self._client.timeout_ms)
        while self._pending:
            failure = self._send_round(deadline)
            if failure is None:
                deadline.progress()
                continue
            try:
                deadline.pause(failure)
            except KafkaError:
                self._pending.clear()
                raise
            self._client.turn_elsewhere()
            self._client.refresh({topic for topic, _ in self._pending}, deadline=deadline)

    # --- collecting ---

    def _choose(self, topic: str, key: bytes | None, partition: int | None) -> int:
        view = self._client.metadata.topics.get(topic)
        if view is None:
            view = self._client.topic(topic, create=self._create_topics)
        if partition is not None:
            if partition not in view.partitions:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} has no partition {partition}")
            return partition
        if key is not None:
            return partition_for_key(key, len(view.partitions))
        if topic not in self._sticky:
            self._sticky[topic] = random.choice(list(view.partitions))  # noqa: S311  # not a secret
        return self._sticky[topic]

    def _seal(self, where: TopicPartition) -> None:
        records = self._open.pop(where)
        self._open_bytes.pop(where)
        self._sticky.pop(where[0], None)
        sequence = -1
        if self._idempotent:
            sequence = self._sequences.get(where, 0)
            self._sequences[where] = sequence + len(records) & _MAX_SEQUENCE
        self._pending.setdefault(where, deque()).append(_Batch(where, records, sequence))

    def _bytes_of(self, batch: _Batch) -> bytes:
        if batch.data is None:
            producer_id, epoch = self._identity() if self._idempotent else (-1, -1)
            batch.data = build_batch(
                batch.records,
                compression=self._compression,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=batch.base_sequence,
            )
        return batch.data

    def _identity(self) -> tuple[int, int]:
        if self._producer is None:
            deadline = Deadline(self._client.timeout_ms)
            while True:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
                answer = self._client.ask(request, timeout_ms=deadline.remaining_ms)
                error = error_of(answer.error_code) if answer.error_code else None
                if error is None:
                    self._producer = answer.producer_id, answer.producer_epoch
                    break
                if not error.code.retriable:
                    raise error
                deadline.pause(error)
        return self._producer

    # --- sending ---

    def _send_round(self, deadline: Deadline) -> KafkaError | None:
        """Send the first batch of every partition; None when all of them got through."""
        failure: KafkaError | None = None
        by_leader: dict[int, list[_Batch]] = {}
        for where, queue in self._pending.items():
            try:
                leader = self._client.metadata.leader_of(*where).leader
            except KafkaError as error:
                failure = error
                continue
            by_leader.setdefault(leader, []).append(queue[0])
        sent: list[tuple[Connection, list[_Batch]]] = []
        try:
            for leader, batches in by_leader.items():
                batches = _fitting(batches, self._bytes_of)
                try:
                    connection = self._client.connect(leader, deadline)
                    request, version = self._request(connection, batches)
                    connection.send(request, version, deadline.remaining_ms, answered=self._acks != 0)
                except KafkaError as error:
                    failure = self._retriable(error)
                    continue
                sent.append((connection, batches))
            for connection, batches in sent:
                failure = self._hear(connection, batches, deadline) or failure
        except BaseException:
            for connection, _ in sent:
                if not connection.is_idle:  # its answer would be taken for that of whatever is sent next
                    connection.close()
            raise
        return failure

    def _hear(self, connection: Connection, batches: list[_Batch], deadline: Deadline) -> KafkaError | None:
        if self._acks == 0:
            for batch in batches:
                self._delivered(batch, -1, -1)
            return None
        try:
            answer: ProduceResponse = connection.receive(deadline.remaining_ms)
        except KafkaError as error:
            return self._retriable(error)
        return self._take(batches, answer)

    def _retriable(self, error: KafkaError) -> KafkaError:
        if error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return error
        self._pending.clear()
        raise error

    def _request(self, connection: Connection, batches: Iterable[_Batch]) -> tuple[ProduceRequest, int]:
        topics = []
        for topic, group in groupby(sorted(batches, key=lambda batch: batch.where), key=lambda batch: batch.where[0]):
            data = [PartitionProduceData(index=batch.where[1], records=self._bytes_of(batch)) for batch in group]
            topic_id = self._client.metadata.topics[topic].topic_id
            topics.append(TopicProduceData(name=topic, topic_id=topic_id, partition_data=data))
        request = ProduceRequest(
            transactional_id=None, acks=self._acks, timeout_ms=self._client.timeout_ms, topic_data=topics
        )
        has_ids = all(topic.topic_id != ZERO_UUID for topic in topics)
        return request, connection.version_of(ProduceRequest, None if has_ids else _BY_NAME)

    def _take(self, batches: list[_Batch], answer: ProduceResponse) -> KafkaError | None:
        failure: KafkaError | None = None
        results: dict[TopicPartition, Any] = {
            (topic.name or self._client.metadata.topic_named_by(topic.topic_id) or "", one.index): one
            for topic in answer.responses
            for one in topic.partition_responses
        }
        for batch in batches:
            result = results.get(batch.where)
            if result is None:
                failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a broker left out a partition")
            elif result.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._delivered(batch, result.base_offset, result.log_append_time_ms)
            elif result.error_code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
                self._split(batch)
            else:
                told = result.error_message or f"partition {batch.where[0]}-{batch.where[1]}"
                failure = self._retriable(error_of(result.error_code, told))
                hint = result.current_leader
                self._client.metadata.take_leader_hint(*batch.where, hint, answer.node_endpoints)
        return failure

    def _split(self, batch: _Batch) -> None:
        """Two halves in place of a batch that the topic's max.message.bytes does not let through."""
        middle = len(batch.records) // 2
        halves = []
        for start, records in ((0, batch.records[:middle]), (middle, batch.records[middle:])):
            sequence = batch.base_sequence + start & _MAX_SEQUENCE if batch.base_sequence >= 0 else -1
            renumbered = [
                Record(number, one.timestamp, one.key, one.value, one.headers) for number, one in enumerate(records)
            ]
            halves.append(_Batch(batch.where, renumbered, sequence))
        queue = self._pending[batch.where]
        queue.popleft()
        queue.extendleft(reversed(halves))

    def _delivered(self, batch: _Batch, base_offset: int, log_append_time_ms: int) -> None:
        queue = self._pending[batch.where]
        queue.popleft()
        if not queue:
            del self._pending[batch.where]
        if self._on_delivery is not None:
            self._on_delivery(Delivery(*batch.where, base_offset, len(batch.records), log_append_time_ms))


def _fitting(batches: list[_Batch], bytes_of: Callable[[_Batch], bytes]) -> list[_Batch]:
    """As many batches as one request should carry; the rest goes in the next round."""
    chosen: list[_Batch] = []
    size = 0
    for batch in batches:
        size += len(bytes_of(batch))
        if chosen and size > _REQUEST_BYTES:
            break
        chosen.append(batch)
    return chosen
