"""Single requests to single nodes, for which Kafka's clients have no call: one Fetch with an epoch, one ListOffsets."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tidelog.client.connection import Connection
from tidelog.errors import ErrorCode
from tidelog.runtime.cluster_plan import HOST
from tidelog.sim.stage import Fetched, StoredRecord
from tidelog.wire.batch import check_crc, iterate_batches, iterate_records
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

FETCH_VERSION = 12
MAX_WAIT_MS = 500
MAX_BYTES = 1 << 20
TIMEOUT_MS = 60_000


class Probe:
    """A consumer's own connections to the nodes it asks by hand."""

    def __init__(self, name: str, ports: Mapping[int, int]) -> None:
        self._name = name
        self._ports = ports
        self._connections: dict[int, Connection] = {}
        self._fetch: tuple[int, int, float] = (-1, 0, 0.0)
        """Whom the fetch under way was sent to, its offset, and when."""

    def _connection(self, node_id: int) -> Connection:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            connection = Connection(HOST, self._ports[node_id], client_id=self._name, timeout_ms=TIMEOUT_MS)
            self._connections[node_id] = connection
        return connection

    def begin_fetch(self, node_id: int, topic: str, partition: int, offset: int, epoch: int) -> None:
        """Send one Fetch, naming a leader epoch where it is not -1."""
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=MAX_BYTES
        )
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        self._connection(node_id).send(request, FETCH_VERSION, TIMEOUT_MS)
        self._fetch = (node_id, offset, time.monotonic())

    def end_fetch(self) -> Fetched:
        """Wait for the answer to it."""
        node_id, offset, begun = self._fetch
        data = self._connection(node_id).receive(TIMEOUT_MS).responses[0].partitions[0]
        records = []
        for batch in iterate_batches(data.records) if data.records else ():
            check_crc(batch)
            records += [
                StoredRecord(record.offset, batch.partition_leader_epoch, (record.value or b"").decode())
                for record in iterate_records(batch)
                if record.offset >= offset
            ]
        code = ErrorCode(data.error_code)
        waited_ms = int((time.monotonic() - begun) * 1000)
        return Fetched(
            "" if code is ErrorCode.NONE else code.name, tuple(records), data.high_watermark, waited_ms, node_id
        )

    def list_offset(self, node_id: int, topic: str, partition: int, at: int, version: int) -> str:
        """Ask one node for an offset; the offset, or the error's name."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=at)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
        connection = self._connection(node_id)
        connection.send(request, version, TIMEOUT_MS)
        answer = connection.receive(TIMEOUT_MS).topics[0].partitions[0]
        code = ErrorCode(answer.error_code)
        return str(answer.offset) if code is ErrorCode.NONE else code.name

    def close(self) -> None:
        """End its connections."""
        for connection in self._connections.values():
            connection.close()
