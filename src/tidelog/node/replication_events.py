"""The story of the replicas as a topic: elections, ISR changes, truncations, fencings, changes of controller, each with
its reason, and where each partition stands at most once a second. Spark and `tidelog events` read it.

    told -> buffered (bounded, what it drops is counted) -> written to the topic's leader, here or on another node

The topic never reports itself. Values are JSON objects with time_ms, node, kind and the event's own fields; the key is
topic-partition where the event is about one.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.node.controller_link import ControllerLink
from tidelog.outbox import Outbox
from tidelog.replica.replicas import Replicas
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "__replication_events"
KINDS = frozenset(
    (
        "broker-directories-offline",
        "broker-fenced",
        "broker-registered",
        "broker-running",
        "broker-stopping",
        "broker-unfenced",
        "broker-unregistered",
        "controller-active",
        "controller-resigned",
        "damaged-replica-discarded",
        "damaged-replica-kept",
        "isr-changed",
        "leader-elected",
        "leader-lost",
        "log-damaged",
        "log-directory-offline",
        "log-restarted",
        "log-truncated",
        "partitions-added",
        "reassignment-cancelled",
        "reassignment-completed",
        "reassignment-started",
        "replica-positions",
        "topic-created",
        "topic-deleted",
    )
)
MAX_IN_ONE_BATCH = 500
LINGER_MS = 20
SETTLE_MS = 1_000
MAX_REPLICATION_FACTOR = 3
RETRY_MS = 500
CREATE_TOPICS_VERSION = 7
PRODUCE_VERSION = 11
CHANNEL = "events"

Peer = tuple[int, str, int]


class ReplicationEvents:
    """Collects what is told on this node and writes it to the topic."""

    def __init__(
        self,
        node_id: int,
        outbox: Outbox,
        replicas: Replicas,
        link: ControllerLink,
        leader: Callable[[], tuple[int, Peer | None] | None],
        broker_count: Callable[[], int],
        max_buffered: int,
    ) -> None:
        self._node_id = node_id
        self._outbox = outbox
        self._replicas = replicas
        self._link = link
        self._leader = leader
        """The leader of the topic's partition and where it is; None while the topic does not exist."""
        self._broker_count = broker_count
        """Brokers that could hold a replica now."""
        self._may_create_at_ms = -1
        """Brokers that start together are given a moment to appear before the topic is spread over them."""
        self._buffer: deque[Record] = deque()
        self._max_buffered = max_buffered
        self.dropped = 0
        """Events that found the buffer full, since the last one that was written said so."""
        self._busy = False
        """A write, the creation of the topic, or a pause is under way."""
        outbox.on_tell = self._told

    def _told(self, kind: str, fields: Mapping[str, Any]) -> None:
        if kind not in KINDS or fields.get("topic") == TOPIC:
            return
        if len(self._buffer) >= self._max_buffered:
            self.dropped += 1
            return
        event: dict[str, Any] = {"time_ms": self._outbox.now_ms, "node": self._node_id, "kind": kind, **fields}
        if self.dropped:
            event["dropped_before"] = self.dropped
            self.dropped = 0
        place = f"{fields['topic']}-{fields['partition']}" if "topic" in fields and "partition" in fields else None
        value = json.dumps(event, separators=(",", ":"), default=str).encode()
        self._buffer.append(Record(0, self._outbox.now_ms, None if place is None else place.encode(), value))
        self._later(LINGER_MS)

    def _later(self, delay_ms: int) -> None:
        if not self._busy:
            self._busy = True
            self._outbox.after(delay_ms, self._write)

    def _write(self) -> None:
        self._busy = False
        if not self._buffer:
            return
        leader = self._leader()
        if leader is None:
            self._create()
            return
        records = [self._buffer.popleft() for _ in range(min(len(self._buffer), MAX_IN_ONE_BATCH))]
        for offset, record in enumerate(records):
            record.offset = offset
        leader_id, address = leader
        if leader_id == self._node_id:
            self._append(records)
        elif address is None:
            self._put_back(records)
        else:
            self._send(records, address)

    def _append(self, records: list[Record]) -> None:
        try:
            partition = self._replicas.find(TOPIC, 0)
            partition.check_leader()
            data = memoryview(bytearray(build_batch(records)))
            partition.append(data, self._outbox.now_ms)
            self._replicas.appended(partition, len(data))
        except KafkaError:
            self._put_back(records)
            return
        except StorageError as error:
            self._replicas.disk_failed(partition, error)
            self._put_back(records)
            return
        if self._buffer:
            self._later(0)

    def _send(self, records: list[Record], address: Peer) -> None:
        self._busy = True
        data = PartitionProduceData(index=0, records=build_batch(records))
        request = ProduceRequest(
            acks=1, timeout_ms=RETRY_MS, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
        )

        def answered(response: Any, error: str | None) -> None:
            self._busy = False
            if error is not None or response.responses[0].partition_responses[0].error_code != ErrorCode.NONE:
                self._put_back(records)
            elif self._buffer:
                self._later(0)

        self._outbox.send(address, CHANNEL, ApiKey.PRODUCE, PRODUCE_VERSION, request, 10 * RETRY_MS, answered)

    def _put_back(self, records: list[Record]) -> None:
        self._buffer.extendleft(reversed(records))
        self._later(RETRY_MS)

    def _create(self) -> None:
        now_ms = self._outbox.now_ms
        if self._may_create_at_ms < 0:
            self._may_create_at_ms = now_ms + SETTLE_MS
        if now_ms < self._may_create_at_ms or self._broker_count() == 0:
            self._later(max(RETRY_MS, self._may_create_at_ms - now_ms))
            return
        self._busy = True
        replication_factor = min(MAX_REPLICATION_FACTOR, self._broker_count())
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=replication_factor)
        topic.configs = [CreatableTopicConfig(name="cleanup.policy", value="delete")]

        def created(_response: Any, _error: str | None) -> None:
            self._busy = False
            self._later(RETRY_MS if self._leader() is None else 0)

        request = CreateTopicsRequest(topics=[topic], timeout_ms=RETRY_MS)
        self._link.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request, created)
