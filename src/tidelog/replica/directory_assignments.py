"""Tells the controller in which log directory each replica lies (KIP-858): it must know what a lost one takes along.

wanted -> in flight -> known     one request under way at a time; what fails is asked again after a pause
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.outbox import Outbox
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)

Ask = Callable[[int, int, Any, Callable[[Any, str | None], None]], None]
Replica = tuple[bytes, int]
VERSION = 0
MAX_IN_ONE_REQUEST = 2_000
RETRY_MS = 200


class DirectoryAssignments:
    """Replicas whose directory the controller does not know yet."""

    def __init__(self, node_id: int, outbox: Outbox, ask: Ask, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._outbox = outbox
        self._ask = ask
        self._broker_epoch = broker_epoch
        self._wanted: dict[Replica, bytes] = {}
        """Directory id by topic id and partition."""
        self._in_flight: dict[Replica, bytes] = {}
        self._scheduled = False

    def assign(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        """Let the controller know; told once, however often it is asked for meanwhile."""
        if self._in_flight.get((topic_id, index)) != directory_id:
            self._wanted[topic_id, index] = directory_id
            self._schedule(0)

    def forget(self, topic_id: bytes, index: int) -> None:
        """The replica is gone."""
        self._wanted.pop((topic_id, index), None)

    def _schedule(self, delay_ms: int) -> None:
        if not self._scheduled and not self._in_flight:
            self._scheduled = True
            self._outbox.after(delay_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if not self._wanted:
            return
        self._in_flight = dict(islice(self._wanted.items(), MAX_IN_ONE_REQUEST))
        directories: dict[bytes, dict[bytes, list[int]]] = {}
        for (topic_id, index), directory_id in self._in_flight.items():
            del self._wanted[topic_id, index]
            directories.setdefault(directory_id, {}).setdefault(topic_id, []).append(index)
        request = AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsRequestDirectoryData(
                    id=directory_id,
                    topics=[
                        AssignReplicasToDirsRequestTopicData(
                            topic_id=topic_id,
                            partitions=[
                                AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes
                            ],
                        )
                        for topic_id, indexes in topics.items()
                    ],
                )
                for directory_id, topics in directories.items()
            ],
        )
        self._ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, VERSION, request, self._answered)

    def _answered(self, response: Any, error: str | None) -> None:
        asked, self._in_flight = self._in_flight, {}
        if error is not None or response.error_code != ErrorCode.NONE:
            self._wanted = {**asked, **self._wanted}
            self._schedule(RETRY_MS)
            return
        # A replica that the controller refuses has moved on or is gone: newer metadata says so.
        if self._wanted:
            self._schedule(0)
