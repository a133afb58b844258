"""Fetch, versions 4 to 18: consumers and followers.

Looks only at the dirty partitions of the reader's session (KIP-227), answers with slices of files that the runtime
sends, and parks a reader that found too little until enough is there or its time is up. KIP-74 byte limits: the first
partition with records gives at least one batch. KIP-98 read_committed, KIP-320 epochs, KIP-516 topic ids (v13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.events import Request
from tidelog.log import LogRead
from tidelog.node.follower_fetches import FollowerFetch
from tidelog.outbox import Timer
from tidelog.replica.fetch_sessions import FetchEntry, FetchSession
from tidelog.replica.partition import Partition, Role
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.FETCH
VERSIONS = (4, 18)
BY_TOPIC_ID_VERSION = 13
REPLICA_STATE_VERSION = 15
FOLLOWER_READ_VERSION = 11
READ_COMMITTED = 1
EMPTY_RECORDS = b""
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value of replica.selector.class that sends consumers to a replica in their own rack (KIP-392)."""


def handle(node: Node, request: Request) -> FetchResponse | None:
    """Answer at once when there is enough, an error, or nothing to wait for; otherwise park."""
    body = request.body
    follower = _follower_of(node, request)
    try:
        session, is_incremental = node.fetch_sessions.resolve(
            body.session_id, body.session_epoch, follower is not None, node.outbox.now_ms
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    by_id = request.api_version >= BY_TOPIC_ID_VERSION
    session.interrupt()
    session.update(body.topics, body.forgotten_topics_data, by_id, node.topic_name_or_empty)
    fetch = _Fetch(node, request, session, by_id, follower, is_full=not is_incremental)
    if follower is not None:
        follower.note(session, body.topics, by_id)
    may_wait = body.max_wait_ms > 0 and bool(session.entries)
    if not (may_wait and body.min_bytes > 0 and fetch.is_at_the_end()):
        fetch.read()
        if fetch.is_complete or not may_wait:
            return fetch.answer()
    fetch.park(body.max_wait_ms)
    return None


def _follower_of(node: Node, request: Request) -> FollowerFetch | None:
    """Whose replica is copied; None for a consumer."""
    if request.api_version < REPLICA_STATE_VERSION:
        broker_id, broker_epoch = request.body.replica_id, -1
    else:
        state = request.body.replica_state
        broker_id, broker_epoch = (-1, -1) if state is None else (state.replica_id, state.replica_epoch)
    return FollowerFetch(node, broker_id, broker_epoch) if broker_id >= 0 else None


class _Fetch:
    """One fetch under way: what it read so far, and, once parked, what it waits for."""

    __slots__ = (
        "by_id",
        "entries",
        "follower",
        "follower_id",
        "has_errors",
        "is_full",
        "new_bytes",
        "node",
        "request",
        "session",
        "size",
        "timer",
    )

    def __init__(
        self,
        node: Node,
        request: Request,
        session: FetchSession,
        by_id: bool,
        follower: FollowerFetch | None,
        is_full: bool,
    ) -> None:
        self.node = node
        self.request = request
        self.session = session
        self.by_id = by_id
        self.follower = follower
        self.follower_id = -1 if follower is None else follower.broker_id
        """Whose replica is copied; -1 for a consumer."""
        self.is_full = is_full
        self.entries: list[tuple[FetchEntry, PartitionData]] = []
        self.size = 0
        self.new_bytes = 0
        self.has_errors = False
        self.timer: Timer | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the reader would want this answer now."""
        return self.has_errors or self.size >= self.request.body.min_bytes

    def is_at_the_end(self) -> bool:
        """Whether the reader plainly has all there is and nothing is wrong: most fetches, and cheaper than a read."""
        session = self.session
        for entry in list(session.entries.values() if self.is_full else session.dirty):
            try:
                partition = self._find(entry)
            except KafkaError:
                return False
            session.watch(entry, partition)
            leadership, log = partition.leadership, partition.log
            if (
                leadership is None
                or entry.fetch_offset != self._end_offset(partition)
                or entry.current_leader_epoch not in (-1, partition.leader_epoch)
                or entry.last_fetched_epoch not in (-1, log.latest_epoch)
                or (self.follower_id >= 0 and self.follower_id not in leadership.followers)
                or self.request.body.rack_id
            ):
                return False
            if (
                entry.sent_high_watermark == partition.high_watermark
                and entry.sent_log_start_offset == log.log_start_offset
            ):
                session.dirty.pop(entry, None)
        return True

    def read(self) -> None:
        """Read the session's dirty partitions, in turn, within the limits."""
        body = self.request.body
        self.entries.clear()
        self.size = 0
        self.has_errors = False
        session = self.session
        budget = min(body.max_bytes, self.node.config.fetch_max_bytes)
        served: list[FetchEntry] = []
        for entry in list(session.entries.values() if self.is_full else session.dirty):
            data = PartitionData(partition_index=entry.index, records=EMPTY_RECORDS)
            size = 0
            try:
                partition = self._find(entry)
                session.watch(entry, partition)
                size = self._read_one(entry, partition, data, budget - self.size)
            except KafkaError as error:
                self.has_errors = True
                data.error_code = error.code
                data.high_watermark = -1
                if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                    known = self.node.replicas.partitions.get((entry.topic, entry.index))
                    if known is not None:
                        data.current_leader = LeaderIdAndEpoch(
                            leader_id=known.leader_id, leader_epoch=known.leader_epoch
                        )
            is_news = (
                data.error_code
                or size
                or data.diverging_epoch is not None
                or data.high_watermark != entry.sent_high_watermark
                or data.log_start_offset != entry.sent_log_start_offset
            )
            self.size += size
            if size:
                served.append(entry)
            elif not is_news and not self._is_cut_short(entry):
                session.dirty.pop(entry, None)  # news stays until an answer has told it: this one may be parked
            if is_news or self.is_full:
                self.entries.append((entry, data))
        for entry in served:  # to the end of the queue: a busy partition must not starve the others
            session.dirty.pop(entry, None)
            session.dirty[entry] = None

    def _is_cut_short(self, entry: FetchEntry) -> bool:
        """Whether there are records for this entry that the limits kept back."""
        partition = entry.partition
        return partition is not None and entry.fetch_offset < self._end_offset(partition)

    def _end_offset(self, partition: Partition) -> int:
        if self.follower_id >= 0:
            return partition.log.log_end_offset
        if self.request.body.isolation_level == READ_COMMITTED:
            return partition.last_stable_offset
        return partition.high_watermark

    def _find(self, entry: FetchEntry) -> Partition:
        known = entry.partition
        if known is not None and self.node.replicas.partitions.get((entry.topic, entry.index)) is known:
            return known
        if self.by_id:
            entry.topic = self.node.topic_name_or_empty(entry.topic_id)
            if not entry.topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.node.replicas.find(entry.topic, entry.index)

    def _read_one(self, entry: FetchEntry, partition: Partition, data: PartitionData, budget: int) -> int:
        """Fill in one partition's answer; returns how many bytes of records it has."""
        if (
            self.follower_id >= 0
            or partition.role is not Role.FOLLOWER
            or self.request.api_version < FOLLOWER_READ_VERSION
        ):
            partition.check_leader(entry.current_leader_epoch)
            if self.follower is not None:
                self.follower.check(partition)
        else:
            partition.check_epoch(entry.current_leader_epoch)  # a consumer may read from a follower (KIP-392)
        log = partition.log
        data.high_watermark = partition.high_watermark
        data.log_start_offset = log.log_start_offset
        data.last_stable_offset = partition.last_stable_offset
        read_committed = self.request.body.isolation_level == READ_COMMITTED
        data.aborted_transactions = [] if read_committed else None
        if entry.last_fetched_epoch >= 0:
            follower_start = entry.log_start_offset if self.follower_id >= 0 else None
            diverging = partition.diverging_epoch(entry.last_fetched_epoch, entry.fetch_offset, follower_start)
            if diverging is not None:
                data.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                self.has_errors = True  # answered at once, as an error is
                return 0
        nearby = self._replica_nearby(entry, partition)
        if nearby is not None:
            data.preferred_read_replica = nearby
            self.has_errors = True  # answered at once: it is to ask there
            return 0
        offset = entry.fetch_offset
        if offset < log.log_start_offset or offset > log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        end_offset = self._end_offset(partition)
        if offset >= end_offset:
            return 0
        if self.follower_id >= 0 and self.node.replicas.throttles.leader_holds_back(partition, self.follower_id):
            return 0  # its records stay for a later fetch (KIP-73)
        at_least_one = self.size == 0
        if budget <= 0 and not at_least_one:
            return 0
        found = self._read_log(partition, offset, min(entry.max_bytes, max(budget, 0)), end_offset, at_least_one)
        if not found.size:
            return 0
        if read_committed:
            data.aborted_transactions = self._aborted(partition, offset, found.next_offset)
        data.records = found.parts
        return int(found.size)

    def _aborted(self, partition: Partition, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        try:
            aborted = partition.log.aborted_transactions(first_offset, end_offset)
        except StorageError as error:
            raise self.node.replicas.disk_failed(partition, error) from None
        return [AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in aborted]

    def _read_log(
        self, partition: Partition, offset: int, max_bytes: int, end_offset: int, at_least_one: bool
    ) -> LogRead:
        try:
            found = partition.log.read(offset, max_bytes, up_to_offset=end_offset, at_least_one=at_least_one)
        except StorageError as error:
            raise self.node.replicas.disk_failed(partition, error) from None
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                self.node.replicas.on_damage(partition, str(error))
            raise
        if found.size and self.follower_id < 0 and partition.read_again.is_due(offset):
            self.node.replicas.look_for_damage(partition, offset, 1, "a consumer reads it again")  # the first batch
        return found

    def _replica_nearby(self, entry: FetchEntry, partition: Partition) -> int | None:
        """The in-sync follower in a consumer's rack that has most of what it asks for; None when it may stay here."""
        rack, leadership = self.request.body.rack_id, partition.leadership
        if (
            not rack
            or leadership is None
            or self.follower_id >= 0
            or self.request.api_version < FOLLOWER_READ_VERSION
            or self.node.config.replica_selector_class != RACK_AWARE_SELECTOR
        ):
            return None
        brokers = self.node.image.brokers

        def is_there(broker_id: int) -> bool:
            broker = brokers.get(broker_id)
            return broker is not None and broker.rack == rack and broker.active

        if is_there(self.node.node_id):
            return None
        followers = [
            (follower.log_end_offset, -broker_id)
            for broker_id, follower in leadership.followers.items()
            if broker_id in leadership.isr
            and is_there(broker_id)
            and follower.log_start_offset <= entry.fetch_offset <= follower.log_end_offset
        ]
        return -max(followers)[1] if followers else None

    # --- answering ---

    def answer(self) -> FetchResponse:
        """The response, grouped by topic as the request's version speaks of them."""
        topics: dict[Any, FetchableTopicResponse] = {}
        for entry, data in self.entries:
            if not data.error_code:
                entry.sent_high_watermark = data.high_watermark
                entry.sent_log_start_offset = data.log_start_offset
                if self.follower_id >= 0 and data.records and entry.partition is not None:
                    self._sent(entry.partition, entry.fetch_offset, sum(map(len, data.records)))
            key = entry.topic_id if self.by_id else entry.topic
            topic = topics.get(key)
            if topic is None:
                topics[key] = topic = FetchableTopicResponse(topic=entry.topic, topic_id=entry.topic_id)
            topic.partitions.append(data)
        if self.session.session_id == 0:
            self.session.close()
        return FetchResponse(session_id=self.session.session_id, responses=list(topics.values()))

    def _sent(self, partition: Partition, offset: int, size: int) -> None:
        """Records leave for a follower."""
        if partition.leadership is not None and self.follower_id in partition.leadership.followers:
            partition.leadership.followers[self.follower_id].sent_offset = offset
        throttles = self.node.replicas.throttles
        if throttles.leads_throttled(partition):
            throttles.leader.record(size)

    # --- waiting ---

    def park(self, max_wait_ms: int) -> None:
        """Wait for bytes or for the time to be up."""
        self.new_bytes = self.size
        self.session.parked = self
        self.timer = self.node.outbox.after(max_wait_ms, self.finish)
        self.node.parked_fetches.setdefault(self.request.connection_id, {})[self] = None

    def changed(self, new_bytes: int) -> None:
        """A watched partition has news: look again at the end of this step if it may be enough."""
        self.new_bytes += new_bytes
        if self.new_bytes >= self.request.body.min_bytes or new_bytes == 0:
            self.node.wake(self)

    def look_again(self) -> None:
        """Answer if there is enough now."""
        if self.timer is None:
            return
        self.read()
        if self.is_complete:
            self._send()

    def finish(self) -> None:
        """The time is up (or the reader asked again): answer with what there is."""
        if self.timer is not None:
            self.read()
            self._send()

    def drop(self) -> None:
        """The reader is gone."""
        self._unpark()
        if self.session.session_id == 0:
            self.session.close()

    def _send(self) -> None:
        self._unpark()
        self.node.outbox.reply(self.request.connection_id, self.request.slot, self.answer())

    def _unpark(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.session.parked = None
        waiting = self.node.parked_fetches.get(self.request.connection_id)
        if waiting is not None:
            waiting.pop(self, None)
            if not waiting:
                del self.node.parked_fetches[self.request.connection_id]
