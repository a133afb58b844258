"""Send batches whose records are encoded already, several in flight, in order, each stored once.

The sender stamps producer, epoch and sequence into a batch and keeps the same bytes through every retry, so that a
broker which has them already says so. A broker remembers the last five batches of a producer in a partition: no more
are ever in flight.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.client import Client, TopicPartition
from tidelog.client.connection import Connection
from tidelog.client.shared_transaction import FENCED, PRODUCE_VERSIONS, PROTOCOL_2, Identity, add_partitions
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.batch_header import TRANSACTIONAL, pack_header, read_header
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.wire.uuids import ZERO_UUID
from tidelog.wire.varints import Buffer

MAX_IN_FLIGHT = 5
_ALL = -1
_BY_NAME = 12
_FIRST_OF_PROTOCOL_2 = 12
MAX_SEQUENCE = 0x7FFFFFFF
_CHANNEL = "produce"


class Chunk(NamedTuple):
    """The records of one batch, encoded and compressed, and what its header says of them."""

    payload: Buffer
    record_count: int
    base_timestamp: int
    max_timestamp: int
    compression: int


@dataclass
class Written:
    """What one partition got."""

    records: int = 0
    bytes: int = 0
    first_offset: int = -1
    checksums: list[int] = field(default_factory=list)
    """Of its batches, in order: by them what is in the log can be told from what another process wrote."""


class _Batch:
    __slots__ = ("data", "number", "record_count", "where")

    def __init__(self, number: int, where: TopicPartition, data: bytes, record_count: int) -> None:
        self.number = number
        """Counts all batches of the sender: whatever is sent again is sent in this order."""
        self.where = where
        self.data = data
        self.record_count = record_count


def new_idempotent_producer(client: Client) -> Identity:
    """A producer id for one process and no transaction: retries do not duplicate, a new process might."""
    deadline = Deadline(client.timeout_ms)
    while True:
        answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1))
        if not answer.error_code:
            return Identity("", answer.producer_id, answer.producer_epoch, PROTOCOL_2)
        error = error_of(answer.error_code)
        if not error.code.retriable:
            raise error
        deadline.pause(error)


class BatchSender:
    """The one writer of the partitions it is given, in one epoch, or one of several by turns; sequences start at 0."""

    def __init__(self, client: Client, identity: Identity, *, delivery_timeout_ms: int) -> None:
        """An identity with an empty transactional id writes without a transaction."""
        self.written: dict[TopicPartition, Written] = {}
        """What was acknowledged."""
        self._client = client
        self._identity = identity
        self._delivery_timeout_ms = delivery_timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._in_flight: deque[tuple[Connection, _Batch]] = deque()
        self._taken = 0

    def send(self, where: TopicPartition, chunk: Chunk) -> None:
        """Take a batch. Whatever an earlier one met may be raised here."""
        if where not in self._sequences:
            self._open(where)
        sequence = self._sequences[where]
        self._sequences[where] = sequence + chunk.record_count & MAX_SEQUENCE
        data = pack_header(
            base_offset=0,
            partition_leader_epoch=-1,
            attributes=chunk.compression | (TRANSACTIONAL if self._identity.transactional_id else 0),
            last_offset_delta=chunk.record_count - 1,
            base_timestamp=chunk.base_timestamp,
            max_timestamp=chunk.max_timestamp,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=sequence,
            record_count=chunk.record_count,
            payload=chunk.payload,
        )
        while len(self._in_flight) >= MAX_IN_FLIGHT:
            self._take_oldest()
        batch = _Batch(self._taken, where, data, chunk.record_count)
        self._taken += 1
        try:
            self._post(batch, Deadline(self._delivery_timeout_ms))
        except KafkaError as error:
            self._recover([batch], error)

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        while self._in_flight:
            self._take_oldest()

    # --- partitions that several senders of one producer write by turns ---

    def go_on(self, where: TopicPartition, sequence: int) -> None:
        """Write here from this sequence on: another sender wrote what comes before it, and has nothing in flight."""
        if where not in self._sequences:
            self._open(where)
        self._sequences[where] = sequence

    def next_sequence(self, where: TopicPartition) -> int:
        """What whoever writes here next must go on with, once nothing is in flight."""
        return self._sequences[where]

    def is_in_flight(self, where: TopicPartition) -> bool:
        """Whether something sent here is not acknowledged yet."""
        return any(batch.where == where for _, batch in self._in_flight)

    # --- one batch ---

    def _open(self, where: TopicPartition) -> None:
        topic, partition = where
        view = self._client.metadata.topics.get(topic) or self._client.topic(topic)
        if partition not in view.partitions:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has no partition {partition}: it has {len(view.partitions)}",
            )
        if self._identity.transactional_id:
            add_partitions(self._client, self._identity, [where], self._delivery_timeout_ms)
        self._sequences[where] = 0

    def _post(self, batch: _Batch, deadline: Deadline) -> None:
        topic, partition = batch.where
        leader = self._client.metadata.leader_of(topic, partition).leader
        connection = self._client.connect(leader, deadline, _CHANNEL)
        topic_id = self._client.metadata.topics[topic].topic_id
        produced = TopicProduceData(
            name=topic, topic_id=topic_id, partition_data=[PartitionProduceData(index=partition, records=batch.data)]
        )
        request = ProduceRequest(
            transactional_id=self._identity.transactional_id or None,
            acks=_ALL,
            timeout_ms=self._client.timeout_ms,
            topic_data=[produced],
        )
        highest = PRODUCE_VERSIONS[self._identity.protocol]
        version = connection.version_of(ProduceRequest, min(highest, _BY_NAME) if topic_id == ZERO_UUID else highest)
        if self._identity.transactional_id and (version >= _FIRST_OF_PROTOCOL_2) != (
            self._identity.protocol == PROTOCOL_2
        ):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{connection.address} has Produce {version}, which does not go with transactions of "
                f"protocol {self._identity.protocol}",
            )
        connection.send(request, version, deadline.remaining_ms)
        self._in_flight.append((connection, batch))

    def _take_oldest(self) -> None:
        connection, batch = self._in_flight.popleft()
        try:
            self._receive(connection, batch)
        except KafkaError as error:
            self._recover([batch], error)

    def _receive(self, connection: Connection, batch: _Batch) -> None:
        """The answer to a batch; raises what it says."""
        answer: ProduceResponse = connection.receive(self._client.timeout_ms)
        result = answer.responses[0].partition_responses[0]
        if result.error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._client.metadata.take_leader_hint(*batch.where, result.current_leader, answer.node_endpoints)
            raise self._explained(batch, error_of(result.error_code, result.error_message))
        written = self.written.setdefault(batch.where, Written())
        if written.first_offset < 0:
            written.first_offset = result.base_offset
        written.records += batch.record_count
        written.bytes += len(batch.data)
        written.checksums.append(read_header(batch.data).crc)

    # --- when something went wrong ---

    def _recover(self, failed: list[_Batch], failure: KafkaError) -> None:
        """Hear out what is in flight, then send again what did not get through, in the order it was sent first."""
        try:
            self._try_again(failed, self._retriable(failure))
        except BaseException:
            for connection, _ in self._in_flight:  # its answer would be taken for that of whatever is sent next
                connection.close()
            raise

    def _try_again(self, failed: list[_Batch], failure: KafkaError) -> None:
        deadline = Deadline(self._delivery_timeout_ms)
        while True:
            broken = {batch.where for batch in failed}
            while self._in_flight:
                connection, batch = self._in_flight.popleft()
                try:
                    self._receive(connection, batch)
                except KafkaError as error:
                    # Behind a batch that failed, the next one is out of order: that is no failure of its own.
                    if not (error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.where in broken):
                        failure = self._retriable(error)
                    broken.add(batch.where)
                    failed.append(batch)
            if not failed:
                return
            deadline.pause(failure)
            self._client.turn_elsewhere()
            self._client.refresh({batch.where[0] for batch in failed}, deadline=deadline)
            again, failed = sorted(failed, key=lambda batch: batch.number), []
            for number, batch in enumerate(again):
                try:
                    self._post(batch, deadline)
                except KafkaError as error:
                    failure = self._retriable(error)
                    failed = again[number:]
                    break
            # What could not be sent waits for the next round, and so does everything behind it: order holds.

    def _retriable(self, error: KafkaError) -> KafkaError:
        if error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return error
        raise error

    def _explained(self, batch: _Batch, error: KafkaError) -> KafkaError:
        topic, partition = batch.where
        told = f"partition {topic}-{partition}: {error.message or error.code.name}"
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:
            records = "a record" if batch.record_count == 1 else f"a batch of {batch.record_count} records"
            told = f"{records} of {len(batch.data)} bytes is larger than {topic}'s max.message.bytes allows"
        elif error.code in FENCED and self._identity.transactional_id:
            told += f" (transactional id {self._identity.transactional_id!r}, epoch {self._identity.epoch})"
        return KafkaError(error.code, told)
