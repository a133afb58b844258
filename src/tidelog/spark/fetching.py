"""What runs in the executors: one range of one partition, fetched raw and decoded to Arrow.

The next Fetch is on its way before the last answer is decoded. A leader that moves, or is behind after an election, is
waited for; records that are gone are data loss, and said to be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.client import Client
from tidelog.client.connection import Connection
from tidelog.client.metadata import Broker, PartitionView, TopicView
from tidelog.client.offsets import EARLIEST, LATEST, list_offsets
from tidelog.errors import ErrorCode, KafkaError, TidelogError
from tidelog.spark.decode import Batches, Decoder
from tidelog.spark.options import ClientOptions
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.uuids import ZERO_UUID

_BY_NAME = 12
"""The last version of Fetch that names topics by name; later ones use ids (KIP-516)."""
_FIRST_FETCH_BYTES = 1024 * 1024
"""Nothing is known yet of how large records are: a range may end long before a large answer would."""
_SPARE_BYTES = 64 * 1024
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)


class DataLossError(TidelogError):
    """Records that should be read are gone. `failOnDataLoss=false` goes on without them."""


@dataclass(frozen=True)
class OffsetRange:
    """Offsets `start` up to before `end` of a partition, and who leads it as far as the driver knows."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: bytes = ZERO_UUID
    leader: Broker | None = None
    leader_epoch: int = -1
    end_epoch: int = -1
    """The leader epoch of the partition's end when the range was planned: no record of it is of a later one. -1 where
    that is not known."""

    @property
    def size(self) -> int:
        """How many offsets; compaction may have left fewer records."""
        return self.end - self.start

    @property
    def name(self) -> str:
        """As Kafka writes a partition."""
        return f"{self.topic}-{self.partition}"


class AnswerMemory:
    """The same memory for every answer of a connection: one is decoded before the next is received."""

    def __init__(self) -> None:
        self._memory = bytearray(_SPARE_BYTES)

    def __call__(self, length: int) -> memoryview:
        if length > len(self._memory):
            self._memory = bytearray(length + length // 4)
        return memoryview(self._memory)[:length]


class FetchSession:
    """Connections of this process to a cluster, kept from task to task."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.client = Client(
            options.bootstrap,
            client_id=options.client_id,
            timeout_ms=options.timeout_ms,
            bootstrap_timeout_ms=options.timeout_ms,
        )
        self._connections: dict[tuple[str, int], Connection] = {}

    def learn(self, wanted: OffsetRange) -> None:
        """Take the driver's word for who leads, unless a newer one is known."""
        if wanted.leader is None:
            return
        metadata = self.client.metadata
        view = metadata.topics.get(wanted.topic)
        if view is None or view.topic_id != wanted.topic_id:
            view = metadata.topics[wanted.topic] = TopicView(wanted.topic, wanted.topic_id, False, {})
        known = view.partitions.get(wanted.partition)
        if known is None or known.leader_epoch < wanted.leader_epoch:
            metadata.brokers[wanted.leader.broker_id] = wanted.leader
            place = (wanted.partition, wanted.leader.broker_id, wanted.leader_epoch)
            view.partitions[wanted.partition] = PartitionView(*place, [], [], [], [], [])

    def connect(self, broker: Broker, deadline: Deadline) -> Connection:
        """The connection to a broker, made when there is none."""
        key = (broker.host, broker.port)
        connection = self._connections.get(key)
        if connection is None or not connection.is_open or not connection.is_idle:
            self.drop(connection)
            timeout_ms = max(1, min(deadline.remaining_ms, 10_000))
            connection = self._connections[key] = Connection(
                *key, client_id=self.options.client_id, timeout_ms=timeout_ms, allocate=AnswerMemory()
            )
        return connection

    def drop(self, connection: Connection | None) -> None:
        """Close a connection, for instance one with an answer on its way that nobody waits for."""
        if connection is not None:
            connection.close()
            self._connections.pop((connection.host, connection.port), None)


_sessions: dict[ClientOptions, FetchSession] = {}


def session_for(options: ClientOptions) -> FetchSession:
    """The session of this process for these options: a worker of Spark runs many tasks, one after the other."""
    if options not in _sessions:
        _sessions[options] = FetchSession(options)
    return _sessions[options]


class RangeFetcher:
    """Reads one range from its start to its end."""

    def __init__(
        self, session: FetchSession, wanted: OffsetRange, decoder: Decoder, *, fail_on_data_loss: bool
    ) -> None:
        self._session = session
        self._options = session.options
        self._client = session.client
        self._wanted = wanted
        self._decoder = decoder
        self._fail_on_data_loss = fail_on_data_loss
        self._position = wanted.start
        self._asked: tuple[Connection, Broker] | None = None
        self._replica: int | None = None
        """The replica that the leader sent us to, for being nearer (KIP-392)."""
        self._rack = self._options.rack
        self._fetch_bytes = min(_FIRST_FETCH_BYTES, self._options.fetch_bytes)
        self._patience = Deadline(self._options.timeout_ms)
        """For a leader to be found and to answer; starts anew with every good answer."""
        self._promise = Deadline(self._options.poll_timeout_ms)
        """For records that are there, since the range ends behind them; starts anew with every record."""
        session.learn(wanted)

    def read(self) -> Iterator[pa.RecordBatch]:
        """The records, in order. KafkaError when they cannot be had in time, DataLossError when they are gone."""
        try:
            while self._position < self._wanted.end:
                data = self._next()
                if data is None:
                    continue
                batches = self._scan(memoryview(data.records if data.records is not None else b""))
                if not batches.count:
                    self._wait_for_records(data)
                    continue
                first = self._position
                batches = self._as_planned(batches)
                if self._position == first:
                    self._advance(batches)
                if self._position < self._wanted.end:
                    self._ask()
                aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
                yield from self._decode(batches, first, aborted)
        finally:
            if self._asked is not None:
                self._session.drop(self._asked[0])

    # --- asking ---

    def _next(self) -> Any:
        """The partition's data of the next answer without an error; None when it has to be asked for again."""
        if self._asked is None:
            self._ask()
        if self._asked is None:
            return None
        connection, broker = self._asked
        try:
            answer = connection.receive(self._options.request_timeout_ms)
        except KafkaError as error:
            self._lost(error)
            return None
        self._asked = None
        data: Any = next((each for topic in answer.responses for each in topic.partitions), None)
        code = answer.error_code or (data.error_code if data is not None else ErrorCode.UNKNOWN_SERVER_ERROR)
        if code:
            self._refused(error_of(code, f"{self._wanted.name} at offset {self._position}"), data, answer)
            return None
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != broker.broker_id:
            self._go_nearer(data.preferred_read_replica)
            return None
        self._patience.progress()
        return data

    def _go_nearer(self, broker_id: int) -> None:
        """Ask another replica from now on; of the brokers, a task knows no more than the leader until it needs to."""
        try:
            if broker_id not in self._client.metadata.brokers:
                self._client.refresh([self._wanted.topic], deadline=self._patience)
        except KafkaError as error:
            self._lost(error)
            return
        self._replica = broker_id if broker_id in self._client.metadata.brokers else None
        if self._replica is None:
            self._rack = ""  # it is gone: the leader serves us as it serves those who say nothing of a rack

    def _ask(self) -> None:
        """Send a Fetch. Where that fails, patience permitting, nothing is asked and the leader is looked for anew."""
        wanted = self._wanted
        self._check_identity()  # another range of this process may have learnt that the name is another topic's now
        if self._position >= wanted.end:
            return
        try:
            view = self._client.metadata.leader_of(wanted.topic, wanted.partition)
            broker = self._client.metadata.brokers.get(self._replica if self._replica is not None else view.leader)
            if broker is None:
                self._replica = None
                broker = self._client.metadata.brokers[view.leader]
            connection = self._session.connect(broker, self._patience)
            topic_id = self._client.metadata.topics[wanted.topic].topic_id
            partition = FetchPartition(
                partition=wanted.partition,
                fetch_offset=self._position,
                current_leader_epoch=view.leader_epoch,
                partition_max_bytes=self._fetch_bytes,
            )
            request = FetchRequest(
                max_wait_ms=self._options.fetch_wait_ms,
                min_bytes=self._options.fetch_min_bytes,
                max_bytes=self._fetch_bytes,
                isolation_level=int(self._options.read_committed),
                topics=[FetchTopic(topic=wanted.topic, topic_id=topic_id, partitions=[partition])],
                rack_id=self._rack,
            )
            version = connection.version_of(FetchRequest, None if topic_id != ZERO_UUID else _BY_NAME)
            connection.send(request, version, self._options.request_timeout_ms)
            self._asked = (connection, broker)
        except KafkaError as error:
            self._lost(error)

    # --- answers ---

    def _scan(self, records: memoryview) -> Batches:
        batches = self._decoder.scan(records)
        if batches.bad_at is not None:
            raise self._corrupt(f"no batch at byte {batches.bad_at} of an answer from offset {self._position}")
        if records and (not batches.count or batches.next_offset <= self._position):
            raise self._corrupt(f"no whole batch in an answer from offset {self._position}")
        return batches

    def _as_planned(self, batches: Batches) -> Batches:
        """What was there when the range was planned. Records of later leaders mean that the log was cut since, and has
        grown again (KIP-320): whoever plans the next range begins where it was cut.
        """
        if self._wanted.end_epoch < 0:
            return batches
        later = (batches.leader_epochs > self._wanted.end_epoch) & (batches.base_offsets < self._wanted.end)
        if not later.any():
            return batches
        kept = batches.first(int(later.argmax()))
        cut = max(self._position, kept.next_offset)
        self._data_lost(self._wanted.end, f"the log was cut back to offset {cut} and grew again while it was read")
        return kept

    def _advance(self, batches: Batches) -> None:
        offsets = batches.next_offset - max(self._position, int(batches.base_offsets[0]))
        self._position = batches.next_offset
        self._promise.progress()
        left = self._wanted.end - self._position
        likely = left * batches.size // max(offsets, 1)
        self._fetch_bytes = min(self._options.fetch_bytes, likely + likely // 16 + _SPARE_BYTES)

    def _decode(self, batches: Batches, first: int, aborted: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._decoder.decode(batches, first, self._wanted.end, aborted)
        except KafkaError as error:
            raise self._corrupt(str(error)) from None

    def _wait_for_records(self, data: Any) -> None:
        """A new leader's high watermark may be behind for a moment: what was committed comes back."""
        if self._replica is not None:  # it stands still, cut off perhaps, and the leader has what was promised
            self._replica, self._rack = None, ""
            return
        seen = data.last_stable_offset if self._options.read_committed else data.high_watermark
        self._promise.pause(
            KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{self._wanted.name}: no record at offset {self._position} came in {self._promise.timeout_ms} ms, "
                f"though the range ends at {self._wanted.end}; its leader serves up to {seen}",
            )
        )

    # --- trouble ---

    def _lost(self, error: KafkaError) -> None:
        """The broker could not be asked or did not answer: find out who leads, and try again until patience ends."""
        if self._asked is not None:
            self._session.drop(self._asked[0])
            self._asked = None
        self._replica = None
        if not (error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE):
            raise error
        self._try_again(error)

    def _try_again(self, error: KafkaError) -> None:
        try:
            self._patience.pause(error)
            self._client.refresh([self._wanted.topic], deadline=self._patience)
        except KafkaError as last:
            if error.code in _GONE and last is error:
                gone = f"topic {self._wanted.topic} or its partition is not there any more"
                self._data_lost(self._wanted.end, gone)
                return
            waited = f"gave up after {self._patience.timeout_ms} ms"
            raise KafkaError(last.code, f"{self._wanted.name}: {waited}: {last}") from None
        self._check_identity()

    def _check_identity(self) -> None:
        """A topic of the same name with another id is another topic: the records of the old one are gone."""
        view = self._client.metadata.topics.get(self._wanted.topic)
        if view is None or ZERO_UUID in (view.topic_id, self._wanted.topic_id):
            return
        if view.topic_id != self._wanted.topic_id:
            self._data_lost(
                self._wanted.end, f"topic {self._wanted.topic} was deleted and created again under the same name"
            )

    def _refused(self, error: KafkaError, data: Any, answer: Any) -> None:
        was_replica, self._replica = self._replica is not None, None
        if was_replica:  # the leader knows better, and may send us back to a replica that is still not up to date
            self._patience.pause(error)
            return
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(error)
        elif error.code.retriable:
            place = (self._wanted.topic, self._wanted.partition)
            hint = data is not None and self._client.metadata.take_leader_hint(
                *place, data.current_leader, answer.node_endpoints
            )
            if not hint:
                self._try_again(error)
        else:
            raise error

    def _out_of_range(self, error: KafkaError) -> None:
        where = (self._wanted.topic, self._wanted.partition)
        earliest = list_offsets(self._client, {where: EARLIEST})[where].offset
        if earliest > self._position:
            gone = f"offsets {self._position} to {min(earliest, self._wanted.end) - 1} were deleted"
            self._data_lost(min(earliest, self._wanted.end), f"{gone}; the log now starts at {earliest}")
            return
        latest = list_offsets(self._client, {where: LATEST}, to_log_end=True)[where].offset
        if latest >= self._position:
            self._try_again(error)
            return
        # The log is shorter than it was seen to be. A replica that is not up to date yet answers so for a moment.
        try:
            self._try_again(error)
        except KafkaError:
            if self._fail_on_data_loss:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{self._wanted.name}: the log ends at {latest} and offset {self._position} did not come back in "
                    f"{self._patience.timeout_ms} ms; failOnDataLoss=false goes on without it",
                ) from None
            self._data_lost(self._wanted.end, f"the log ends at {latest}")

    def _data_lost(self, go_on_at: int, why: str) -> None:
        message = f"{self._wanted.name}: data loss: {why}"
        if self._fail_on_data_loss:
            raise DataLossError(f"{message}; failOnDataLoss=false goes on without them")
        print(f"tidelog: {message}; going on, as failOnDataLoss=false says", file=sys.stderr)
        self._position = go_on_at

    def _corrupt(self, what: str) -> KafkaError:
        view = self._client.metadata.leader_of(self._wanted.topic, self._wanted.partition)
        broker = self._client.metadata.brokers[view.leader]
        sender = f"broker {broker.broker_id} ({broker.host}:{broker.port})"
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self._wanted.name}: {what}, as {sender} sent it")
