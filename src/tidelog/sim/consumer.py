"""A consumer of a simulated cluster: reads one partition on from its position, from the leader or a replica nearby."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.sim.client import Client
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import check_crc, iterate_batches, iterate_records
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

FETCH_VERSION = 12
LATEST, EARLIEST = -1, -2
LIST_OFFSETS_VERSION = 7
MAX_BYTES = 1 << 20


class Read:
    """One record as a consumer saw it."""

    __slots__ = ("at_ms", "epoch", "node_id", "offset", "value")

    def __init__(self, offset: int, epoch: int, value: str, node_id: int, at_ms: int) -> None:
        self.offset = offset
        self.epoch = epoch
        self.value = value
        self.node_id = node_id
        """Who served it."""
        self.at_ms = at_ms


class FetchAnswer:
    """What one fetch brought."""

    __slots__ = ("code", "high_watermark", "preferred_replica", "reads", "waited_ms")

    def __init__(
        self, code: ErrorCode, high_watermark: int, preferred_replica: int, reads: list[Read], waited_ms: int
    ) -> None:
        self.code = code
        self.high_watermark = high_watermark
        self.preferred_replica = preferred_replica
        self.reads = reads
        self.waited_ms = waited_ms


class Consumer(Client):
    """Reads on from its position; remembers all it was ever shown."""

    def __init__(self, world: World, name: str, brokers: Sequence[int], rack: str = "") -> None:
        super().__init__(world, name, brokers)
        self.rack = rack
        self.position = 0
        self.seen: list[Read] = []
        self.preferred_replica = -1
        self.resets = 0
        """How often its position was beyond the log, so that it began anew: records were lost."""
        self.max_wait_ms = 500
        self.corruptions = 0
        """How often what it was sent was not what had been written, by its checksum."""
        self.poll_ms = 0
        """How long it works on what it got before it reads on."""
        self.skipped: list[tuple[int, int]] = []
        """Offsets it never saw because the log began later when it came there: from, and up to where."""
        self.uncommitted: list[Read] = []
        """What it was sent although it lay beyond the watermark of the same answer."""
        self.misdirected: list[tuple[int, Read]] = []
        """What it was sent of a later leader epoch than the one it had asked for, which is the first of the pair."""

    def read_on(self, topic: str, partition: int, then: Callable[[FetchAnswer], None]) -> None:
        """Fetch until there is nothing more for now, or an error that does not pass; then tell the last answer."""
        leader, leader_epoch = self.leaders.get((topic, partition), (-1, -1))
        node_id = leader if self.preferred_replica < 0 else self.preferred_replica
        if node_id < 0:
            self.find_leader(topic, lambda: self._found(topic, partition, then))
            return

        def fetched(answer: FetchAnswer) -> None:
            if answer.preferred_replica >= 0:
                self.preferred_replica = answer.preferred_replica
                self.read_on(topic, partition, then)
            elif answer.code is not ErrorCode.NONE:
                # KIP-392: what a follower does not have yet the leader may; only its word on a position is final.
                if answer.code is ErrorCode.OFFSET_OUT_OF_RANGE and node_id == leader:
                    self._find_start(leader, leader_epoch, topic, partition, then)
                    return
                self._look_for_leader(topic, partition, leader_epoch)
                self.after(100, lambda: self.read_on(topic, partition, then))
            elif answer.reads:
                self.seen += answer.reads
                self.position = answer.reads[-1].offset + 1
                if self.poll_ms:
                    self.after(self.poll_ms, lambda: self.read_on(topic, partition, then))
                else:
                    self.read_on(topic, partition, then)
            else:
                then(answer)

        # KIP-320: whoever is not of the epoch that the metadata named must not answer.
        self.fetch(node_id, topic, partition, self.position, leader_epoch, fetched)

    def _find_start(
        self, leader: int, leader_epoch: int, topic: str, partition: int, then: Callable[[FetchAnswer], None]
    ) -> None:
        """Its position is not in the log: go on where that begins, or, where it had more than there is, begin anew."""

        def found(code: ErrorCode, offset: int) -> None:
            if code is ErrorCode.NONE and offset > self.position:
                self.skipped.append((self.position, offset))
                self.position = offset
            elif code is ErrorCode.NONE:
                self.resets += 1
                self.seen.clear()
                self.skipped.append((0, offset))
                self.position = offset
            self._look_for_leader(topic, partition, leader_epoch)
            self.after(100, lambda: self.read_on(topic, partition, then))

        self.list_offset(leader, topic, partition, EARLIEST, LIST_OFFSETS_VERSION, found, leader_epoch)

    def _look_for_leader(self, topic: str, partition: int, leader_epoch: int) -> None:
        """Somebody of this epoch or a later one is to answer, as for Java's consumers (KIP-320): a leader that was
        replaced while it stood still would take a position in its successor's log for one beyond the end.
        """
        self.preferred_replica = -1
        self.leaders[topic, partition] = (-1, leader_epoch)

    def _found(self, topic: str, partition: int, then: Callable[[FetchAnswer], None]) -> None:
        delay_ms = 0 if self.leaders.get((topic, partition), (-1, -1))[0] >= 0 else 100
        self.after(delay_ms, lambda: self.read_on(topic, partition, then))

    def fetch(
        self,
        node_id: int,
        topic: str,
        partition: int,
        offset: int,
        leader_epoch: int,
        then: Callable[[FetchAnswer], None],
    ) -> None:
        """One Fetch to one broker, naming a leader epoch where it is not -1."""
        wanted = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            current_leader_epoch=leader_epoch,
            partition_max_bytes=MAX_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
            rack_id=self.rack,
        )
        begun_ms = self.world.now_ms

        def answered(response: Any) -> None:
            waited_ms = self.world.now_ms - begun_ms
            if response is None:
                then(FetchAnswer(ErrorCode.NETWORK_EXCEPTION, -1, -1, [], waited_ms))
                return
            data = response.responses[0].partitions[0]
            reads: list[Read] = []
            try:
                for batch in iterate_batches(data.records) if data.records else ():
                    check_crc(batch)
                    for record in iterate_records(batch):
                        if record.offset >= offset:
                            value = (record.value or b"").decode()
                            epoch = batch.partition_leader_epoch
                            reads.append(Read(record.offset, epoch, value, node_id, self.world.now_ms))
            except KafkaError as error:
                self.corruptions += 1
                if not reads:  # else it takes what is whole, and finds the rest damaged when it comes there
                    then(FetchAnswer(error.code, -1, -1, [], waited_ms))
                    return
            if reads and reads[-1].offset >= data.high_watermark:
                self.uncommitted.append(reads[-1])
            if reads and reads[-1].epoch > leader_epoch >= 0:
                self.misdirected.append((leader_epoch, reads[-1]))
            then(
                FetchAnswer(
                    ErrorCode(data.error_code), data.high_watermark, data.preferred_read_replica, reads, waited_ms
                )
            )

        self.ask(node_id, ApiKey.FETCH, FETCH_VERSION, request, answered, self.max_wait_ms + 30_000)

    def list_offset(
        self,
        node_id: int,
        topic: str,
        partition: int,
        timestamp: int,
        version: int,
        then: Callable[[ErrorCode, int], None],
        leader_epoch: int = -1,
    ) -> None:
        """Ask one broker for the latest offset (-1), or for that of a timestamp."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])

        def answered(response: Any) -> None:
            if response is None:
                then(ErrorCode.NETWORK_EXCEPTION, -1)
            else:
                answer = response.topics[0].partitions[0]
                then(ErrorCode(answer.error_code), answer.offset)

        self.ask(node_id, ApiKey.LIST_OFFSETS, version, request, answered, 10_000)
