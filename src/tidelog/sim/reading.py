"""A client of a simulated cluster that reads one partition, committed records or all, and notes what it saw when."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.sim.scripted import RETRY_MS, Script, Scripted
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import check_crc, iterate_batches, iterate_records
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

FETCH_VERSION = 12
MAX_BYTES = 1 << 20
SHARE_BYTES = 600
"""Of what a reader with little room asks for: it gets transactions in parts."""


class Seen:
    """One record as a reader saw it."""

    __slots__ = ("at_ms", "node_id", "offset", "value")

    def __init__(self, offset: int, value: str, node_id: int, at_ms: int) -> None:
        self.offset = offset
        self.value = value
        self.node_id = node_id
        self.at_ms = at_ms


def records_of(data: Any, offset: int, *, is_committed: bool) -> list[tuple[int, str]]:
    """What a client makes of a fetched partition: when it wants committed records, those of aborted transactions are
    left out, as it is told where those begin.
    """
    told = data.aborted_transactions or () if is_committed else ()
    begins = sorted(((one.first_offset, one.producer_id) for one in told), reverse=True)
    aborted: set[int] = set()
    found = []
    for batch in iterate_batches(data.records) if data.records else ():
        while begins and begins[-1][0] <= batch.last_offset:
            aborted.add(begins.pop()[1])
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            records = [one for one in iterate_records(batch) if one.offset >= offset]
            found += [(one.offset, (one.value or b"").decode()) for one in records]
    return found


def end_of(data: Any, offset: int) -> int:
    """Where to read on after a fetched partition."""
    ends = [batch.last_offset + 1 for batch in iterate_batches(data.records)] if data.records else []
    return max([offset, *ends])


def whole_part_of(records: bytes) -> bytes:
    """The batches before the first whose checksum is wrong."""
    end = 0
    with suppress(KafkaError):
        for batch in iterate_batches(records):
            check_crc(batch)
            end = batch.position + batch.size
    return records[:end]


class PartitionReader(Scripted):
    """Whoever reads partitions one fetch at a time."""

    damaged: tuple[tuple[str, int], ...] = ()
    """Partitions of which it was sent something that was not what had been written, by its checksum."""

    def fetching(
        self, topic: str, index: int, offset: int, *, is_committed: bool, max_bytes: int = MAX_BYTES, wait_ms: int = 0
    ) -> Script:
        """The fetched partition and who served it; None when there was nothing to be had, for whatever reason."""
        leader = yield from self.leading(topic, index)
        wanted = FetchPartition(
            partition=index,
            fetch_offset=offset,
            current_leader_epoch=self.leaders[topic, index][1],
            partition_max_bytes=max_bytes,
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            isolation_level=int(is_committed),
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = yield from self.asking(leader, ApiKey.FETCH, FETCH_VERSION, request, wait_ms + 2_000)
        data = None if answer is None else answer.responses[0].partitions[0]
        if data is None or data.error_code:
            if data is None or data.error_code != ErrorCode.OFFSET_NOT_AVAILABLE:
                self.look_again(topic, index)
            return None
        whole = whole_part_of(data.records) if data.records else b""
        if data.records and len(whole) < len(data.records):
            # It takes what is whole; when it comes to the rest it can do nothing but ask again.
            self.damaged = (*self.damaged, (topic, index))
            data = copy(data)
            data.records = whole
        return data, leader


class Reader(PartitionReader):
    """Reads a partition from its start to wherever it ends."""

    def __init__(
        self, world: World, name: str, brokers: Sequence[int], draw: int, topic: str, index: int, *, is_committed: bool
    ) -> None:
        super().__init__(world, name, brokers, draw)
        self.topic = topic
        self.index = index
        self.is_committed = is_committed
        self.position = 0
        self.seen: list[Seen] = []
        self.play(self._life())

    def _life(self) -> Script:
        max_bytes = (MAX_BYTES, SHARE_BYTES)[self.chance.below(2)]
        while True:
            found = yield from self.fetching(
                self.topic,
                self.index,
                self.position,
                is_committed=self.is_committed,
                max_bytes=max_bytes,
                wait_ms=500,
            )
            if found is None:
                yield from self.sleeping(RETRY_MS)
                continue
            data, node_id = found
            now_ms = self.world.now_ms
            records = records_of(data, self.position, is_committed=self.is_committed)
            self.seen += [Seen(offset, value, node_id, now_ms) for offset, value in records]
            self.position = end_of(data, self.position)
            yield from self.sleeping(50 + self.chance.below(250))
