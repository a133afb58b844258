"""Brokers in threads that keep records in memory and fail when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support.probe import read_frame
from tidelog.errors import ErrorCode
from tidelog.wire import frames
from tidelog.wire.apis import ApiKey, api_versions
from tidelog.wire.batch import iterate_batches, stamp
from tidelog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidelog.wire.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.wire.messages.fetch import LeaderIdAndEpoch as FetchLeader
from tidelog.wire.messages.fetch import NodeEndpoint as FetchEndpoint
from tidelog.wire.messages.init_producer_id import InitProducerIdResponse
from tidelog.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.wire.messages.produce import LeaderIdAndEpoch as ProduceLeader
from tidelog.wire.messages.produce import NodeEndpoint as ProduceEndpoint
from tidelog.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

Close = object()
"""An answer that is none: the connection is closed instead."""


@dataclass
class Partition:
    """What is in a partition, and who leads it."""

    leader: int = 1
    epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    end: int = 0
    start: int = 0
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer id, first offset, and the offset of the marker."""
    sequences: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By producer id: the last sequence stored, and the base offset of its batch."""

    def append(self, data: bytes) -> int:
        """Store a batch with the next offsets."""
        buffer = bytearray(data)
        header = next(iter(iterate_batches(buffer)))
        if header.has_producer_id:
            last, offset = self.sequences.get(header.producer_id, (-2, -1))
            if header.last_sequence <= last:
                return offset
        stamp(header, self.end, self.epoch)
        base = self.end
        self.sequences[header.producer_id] = (header.last_sequence, base)
        self.end = header.next_offset
        self.batches.append(bytes(buffer))
        return base


def _is_out_of_order(partition: Partition, data: bytes) -> bool:
    """Whether a producer has left something out, as a real broker would say."""
    header = next(iter(iterate_batches(data)))
    last, _ = partition.sequences.get(header.producer_id, (-1, -1))
    return header.has_producer_id and header.base_sequence > last + 1


Fault = Callable[["Broker", Any, int], Any]
"""Of (broker, request, version): an answer, Close, or None for no fault."""


class Cluster:
    """One to three brokers with one topic, "t"."""

    TOPIC = "t"
    TOPIC_ID = b"topic-id-of-t-16"

    def __init__(
        self, brokers: int, partitions: int, versions: dict[int, tuple[int, int]] | None = None, port: int = 0
    ) -> None:
        self.partitions = [Partition() for _ in range(partitions)]
        self.faults: dict[int, list[Fault]] = {}
        """By API: what the next requests meet instead of their answer, one each."""
        self.requests: list[tuple[int, int, Any, int]] = []
        """Every request: broker, API, body, version."""
        self.lock = threading.Lock()
        supported = {int(key): api_versions(key) for key in ANSWERS}
        self.versions = supported | (versions or {})
        self.brokers = [Broker(self, number + 1, port) for number in range(brokers)]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    def fail(self, api: ApiKey, *faults: Fault) -> None:
        """Let the next requests of an API fail, each in its way."""
        self.faults.setdefault(api, []).extend(faults)

    def of(self, api: ApiKey) -> list[Any]:
        """Bodies of the requests of an API that came so far."""
        with self.lock:
            return [body for _, key, body, _ in self.requests if key == api]

    def wait_for(self, api: ApiKey, count: int) -> None:
        """Until so many requests of an API have come, and their faults were taken."""
        for _ in range(6000):
            if len(self.of(api)) >= count:
                return
            time.sleep(0.01)
        raise AssertionError(f"{count} requests did not come")

    def close(self) -> None:
        for broker in self.brokers:
            broker.stop()


class Broker:
    """One listener; every connection has a thread."""

    def __init__(self, cluster: Cluster, broker_id: int, port: int = 0) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        """As a kill: listener and connections end."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            while True:
                answer = self._answer(memoryview(read_frame(connection)))
                if answer is Close:
                    return
                if answer is not None:
                    connection.sendall(answer)

    def _answer(self, frame: memoryview) -> Any:
        try:
            request = frames.decode_request(frame, self.cluster.versions)
        except frames.UnsupportedVersion as error:
            body: Any = ApiVersionsResponse(error_code=35, api_keys=self._keys())
            return b"".join(frames.encode_response(error.api_key, 0, error.correlation_id, body))
        with self.cluster.lock:
            self.cluster.requests.append((self.broker_id, request.api_key, request.body, request.api_version))
            faults = self.cluster.faults.get(request.api_key)
            body = faults.pop(0)(self, request.body, request.api_version) if faults else None
            if body is None:
                body = ANSWERS[request.api_key](self, request.body, request.api_version)
        if body is Close or isinstance(body, bytes):
            return body
        if request.api_key == ApiKey.PRODUCE and request.body.acks == 0:
            return None
        return b"".join(frames.encode_response(request.api_key, request.api_version, request.correlation_id, body))

    def _keys(self) -> list[ApiVersion]:
        return [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.cluster.versions.items()
        ]

    def leads(self, index: int, epoch: int) -> int:
        partition = self.cluster.partitions[index]
        if partition.leader != self.broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.FENCED_LEADER_EPOCH if 0 <= epoch < partition.epoch else ErrorCode.NONE


def _api_versions(broker: Broker, body: Any, version: int) -> Any:
    return ApiVersionsResponse(api_keys=broker._keys())


def _metadata(broker: Broker, body: Any, version: int) -> Any:
    cluster = broker.cluster
    known = MetadataResponseTopic(
        name=cluster.TOPIC,
        topic_id=cluster.TOPIC_ID,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=one.leader,
                leader_epoch=one.epoch,
                replica_nodes=[other.broker_id for other in cluster.brokers],
                isr_nodes=[one.leader],
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if one.leader < 0 else 0,
            )
            for index, one in enumerate(cluster.partitions)
        ],
    )
    wanted = [cluster.TOPIC] if body.topics is None else [topic.name for topic in body.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=other.broker_id, host="127.0.0.1", port=other.port)
            for other in cluster.brokers
        ],
        cluster_id="test",
        controller_id=1,
        topics=[known if name == cluster.TOPIC else MetadataResponseTopic(name=name, error_code=3) for name in wanted],
    )


def _produce(broker: Broker, body: Any, version: int) -> Any:
    results = []
    for topic in body.topic_data:
        answers = []
        for data in topic.partition_data:
            code = broker.leads(data.index, -1)
            partition = broker.cluster.partitions[data.index]
            if code == ErrorCode.NONE and _is_out_of_order(partition, bytes(data.records)):
                code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            answer = PartitionProduceResponse(index=data.index, error_code=code)
            if code == ErrorCode.NONE:
                answer.base_offset = partition.append(bytes(data.records))
            else:
                answer.current_leader = ProduceLeader(leader_id=partition.leader, leader_epoch=partition.epoch)
            answers.append(answer)
        results.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    endpoints = [
        ProduceEndpoint(node_id=other.broker_id, host="127.0.0.1", port=other.port) for other in broker.cluster.brokers
    ]
    return ProduceResponse(responses=results, node_endpoints=endpoints)


def _fetch(broker: Broker, body: Any, version: int) -> Any:
    results = []
    for topic in body.topics:
        answers = []
        for data in topic.partitions:
            partition = broker.cluster.partitions[data.partition]
            code = broker.leads(data.partition, data.current_leader_epoch)
            if code == ErrorCode.NONE and not partition.start <= data.fetch_offset <= partition.end:
                code = ErrorCode.OFFSET_OUT_OF_RANGE
            answer = PartitionData(partition_index=data.partition, error_code=code, high_watermark=partition.end)
            answer.records = b""
            if code == ErrorCode.NONE:
                wanted = [
                    one for one in partition.batches if next(iterate_batches(one)).last_offset >= data.fetch_offset
                ]
                answer.records = b"".join(wanted[:2])
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=producer_id, first_offset=first)
                    for producer_id, first, marker in partition.aborted
                    if marker >= data.fetch_offset
                ]
            elif code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = FetchLeader(leader_id=partition.leader, leader_epoch=partition.epoch)
            answers.append(answer)
        results.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers))
    endpoints = [
        FetchEndpoint(node_id=other.broker_id, host="127.0.0.1", port=other.port) for other in broker.cluster.brokers
    ]
    return FetchResponse(responses=results, node_endpoints=endpoints)


def _list_offsets(broker: Broker, body: Any, version: int) -> Any:
    topics = []
    for topic in body.topics:
        answers = []
        for one in topic.partitions:
            partition = broker.cluster.partitions[one.partition_index]
            code = broker.leads(one.partition_index, one.current_leader_epoch)
            offset = {-1: partition.end, -2: partition.start}.get(one.timestamp, -1)
            answers.append(
                ListOffsetsPartitionResponse(partition_index=one.partition_index, error_code=code, offset=offset)
            )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _init_producer_id(broker: Broker, body: Any, version: int) -> Any:
    return InitProducerIdResponse(producer_id=7, producer_epoch=0)


ANSWERS: dict[int, Fault] = {
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.METADATA: _metadata,
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
}


@contextmanager
def running(
    brokers: int = 1, partitions: int = 1, versions: dict[int, tuple[int, int]] | None = None
) -> Iterator[Cluster]:
    """A cluster for one test."""
    cluster = Cluster(brokers, partitions, versions)
    try:
        yield cluster
    finally:
        cluster.close()
