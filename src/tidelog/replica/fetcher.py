"""Copies partitions from one leader node: one stream of fetches for all of them, in one incremental session (KIP-227).

    a partition is  READY      named in the next fetch if the leader does not know its position yet
                    DELAYED    left out of the session for a moment: the leader refused it, or it is being repaired

A fetch carries the last epoch of our log; a leader whose log parted from ours says where (KIP-320, KIP-595) and we cut
there. At most two fetches are under way: the second only to add partitions while the first is parked at the leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.errors import CorruptionError, ErrorCode, KafkaError, StorageError
from tidelog.events import CONNECTION_REFUSED
from tidelog.outbox import Outbox
from tidelog.replica import copying
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tidelog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 9
LATEST, EARLIEST_LOCAL = -1, -4
MAX_UNDER_WAY = 2
FIRST_DELAY_MS = 20
DOUBT_MS = 500
"""About the time a controller takes to replace a leader whose connection broke."""
HELD_BACK_MS = 100
"""How often a throttled partition is looked at again."""
CHANNEL = "replica"
SIDE_CHANNEL = "replica-side"
"""Questions that must not wait behind a parked fetch."""
FORGET_SESSION = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)

Peer = tuple[int, str, int]


class _Copy:
    """One partition in the stream."""

    __slots__ = ("delay_ms", "partition", "since", "told", "told_since")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.delay_ms = FIRST_DELAY_MS
        self.told: tuple[int, int, int, int] | None = None
        """What the session knows: fetch offset, last epoch, log start, leader epoch. None: not in the session."""
        self.since = 0
        """Number of the fetch that brought it into the session: answers to earlier ones speak of a log that was cut."""
        self.told_since = 0
        """Number of the fetch that told the session this position: answers to earlier ones speak of one before it."""

    def is_where_it_was_at(self, number: int) -> bool:
        """Whether our log is where the leader thought it was when it answered a fetch."""
        return self.told_since <= number and self.told == self.position()

    def position(self) -> tuple[int, int, int, int]:
        log = self.partition.log
        return log.log_end_offset, log.latest_epoch, log.log_start_offset, self.partition.leader_epoch


class Fetcher:
    """The stream from one leader node."""

    def __init__(
        self,
        node_id: int,
        leader_id: int,
        outbox: Outbox,
        replicas: Replicas,
        broker_epoch: Callable[[], int],
        address: Callable[[int], Peer | None],
    ) -> None:
        self._node_id = node_id
        self._leader_id = leader_id
        self._outbox = outbox
        self._replicas = replicas
        self._broker_epoch = broker_epoch
        self._address = address
        self._copies: dict[tuple[bytes, int], _Copy] = {}
        self._changed: dict[tuple[bytes, int], None] = {}
        """Copies whose position the session does not know yet."""
        self._forgotten: dict[tuple[bytes, int], None] = {}
        """Left the stream, but the session still has them."""
        self._delayed: set[tuple[bytes, int]] = set()
        """Copies that are left out of the session for a moment."""
        self._session_id = 0
        self._session_epoch = 0
        self._has_room = True
        """Whether the leader opens sessions, as far as we know."""
        self._said_broker_epoch = broker_epoch()
        self._generation = 0
        """Raised when the session starts anew: answers of an older one are ignored."""
        self._number = 0
        """Counts fetches."""
        self._under_way = 0
        self._failures = 0
        self._paused = False
        self._scheduled = False
        self.doubted_until_ms = 0
        """Until then nobody should be sent to this leader: the connection to it broke just now."""

    def __len__(self) -> int:
        return len(self._copies)

    def add(self, partition: Partition) -> None:
        """Follow a partition from where its log ends."""
        key = (partition.topic_id, partition.index)
        self._copies[key] = _Copy(partition)
        self._delayed.discard(key)
        self._forgotten.pop(key, None)
        self._changed[key] = None
        self._schedule()

    def remove(self, partition: Partition) -> None:
        """Stop following it."""
        key = (partition.topic_id, partition.index)
        copy = self._copies.get(key)
        if copy is None or copy.partition is not partition:
            return
        del self._copies[key]
        self._delayed.discard(key)
        self._changed.pop(key, None)
        if copy.told is not None:
            self._forgotten[key] = None

    # --- asking ---

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._outbox.at_end_of_step(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._paused or not self._copies or self._under_way >= MAX_UNDER_WAY:
            return
        if self._under_way and (not self._changed or self._session_id == 0):
            return  # what is added to a session needs one that is open
        if not self._changed and len(self._delayed) == len(self._copies):
            return  # a fetch of nothing would be answered at once, and the next as well
        address = self._address(self._leader_id)
        if address is None:
            self._pause()
            return
        config = self._replicas.config
        broker_epoch = self._broker_epoch()
        if broker_epoch != self._said_broker_epoch:
            self._said_broker_epoch = broker_epoch
            self._start_anew()  # what a session does not name was fetched with the former epoch (KIP-903)
        request = FetchRequest(
            replica_id=self._node_id,
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch),
            # What opens a session is answered at once: until then nothing can be added to it.
            max_wait_ms=0 if self._session_id == 0 and self._has_room else config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=self._wanted(config.replica_fetch_max_bytes),
            forgotten_topics_data=self._no_longer_wanted(),
        )
        self._session_epoch += 1
        self._under_way += 1
        generation, number = self._generation, self._number
        timeout_ms = config.replica_socket_timeout_ms
        self._outbox.send(
            address,
            CHANNEL,
            ApiKey.FETCH,
            FETCH_VERSION,
            request,
            timeout_ms,
            lambda response, error: self._answered(generation, number, response, error),
        )

    def _wanted(self, max_bytes: int) -> list[FetchTopic]:
        topics: dict[bytes, FetchTopic] = {}
        self._number += 1
        for key in self._changed:
            copy = self._copies[key]
            partition = copy.partition
            position = copy.position()
            if copy.told is None:
                copy.since = self._number
            if copy.told != position:
                copy.told, copy.told_since = position, self._number
            offset, last_epoch, log_start, leader_epoch = position
            topic = topics.get(partition.topic_id)
            if topic is None:
                topics[partition.topic_id] = topic = FetchTopic(topic=partition.topic, topic_id=partition.topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=log_start,
                    partition_max_bytes=max_bytes,
                    replica_directory_id=partition.directory_id,
                )
            )
        self._changed.clear()
        return list(topics.values())

    def _no_longer_wanted(self) -> list[ForgottenTopic]:
        topics: dict[bytes, ForgottenTopic] = {}
        for topic_id, index in self._forgotten:
            topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        self._forgotten.clear()
        return list(topics.values())

    # --- answers ---

    def _answered(self, generation: int, number: int, response: Any, error: str | None) -> None:
        if generation != self._generation:
            return
        self._under_way -= 1
        self._judge_leader(error)
        if error is not None or response.error_code != ErrorCode.NONE:
            self._start_anew()
            if error is not None or response.error_code not in FORGET_SESSION:
                self._pause()
            else:
                self._schedule()
            return
        self._failures = 0
        self._session_id = response.session_id
        self._has_room = self._session_id != 0
        if not self._has_room:  # everything is named every time
            self._session_epoch = 0
            self._changed.update(dict.fromkeys(key for key in self._copies if key not in self._delayed))
        for topic in response.responses:
            for data in topic.partitions:
                copy = self._copies.get((topic.topic_id, data.partition_index))
                if (
                    copy is not None
                    and copy.told is not None
                    and copy.since <= number
                    and copy.partition.role is Role.FOLLOWER
                ):
                    self._take(copy, number, data)
        self._schedule()

    def _judge_leader(self, error: str | None) -> None:
        """A connection that breaks is the first sign of a leader's death, long before the controller has decided.

        It may as well be our network, so the doubt is short; it lasts while nobody listens at the leader's address.
        """
        if error is None:
            self.doubted_until_ms = 0
        elif error == CONNECTION_REFUSED:
            backoff_ms = self._replicas.config.replica_fetch_backoff_ms
            self.doubted_until_ms = self._outbox.now_ms + backoff_ms + DOUBT_MS
        elif not self._failures:
            self.doubted_until_ms = self._outbox.now_ms + DOUBT_MS

    def _start_anew(self) -> None:
        """The next fetch opens a session with everything in it."""
        self._generation += 1
        self._under_way = 0
        self._session_id = self._session_epoch = 0
        self._forgotten.clear()
        self._changed.clear()
        for key, copy in self._copies.items():
            copy.told = None
            if key not in self._delayed:
                self._changed[key] = None

    def _pause(self) -> None:
        """The leader cannot be reached: wait a little longer each time, up to replica.fetch.backoff.ms."""
        self._failures += 1
        self._paused = True
        delay_ms = min(FIRST_DELAY_MS << min(self._failures, 10), self._replicas.config.replica_fetch_backoff_ms)

        def resume() -> None:
            self._paused = False
            self._schedule()

        self._outbox.after(delay_ms, resume)

    def _take(self, copy: _Copy, number: int, data: Any) -> None:
        """Take over one partition's part of the answer to the fetch of this number."""
        partition = copy.partition
        is_parted = data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0
        is_out_of_range = data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        try:
            if (is_parted or is_out_of_range) and not copy.is_where_it_was_at(number):
                # Of two fetches under way the first one brought us further. What we have since may count already, and
                # must not be cut for what was said before: the leader looks at each position that it is told.
                self._moved(copy)
            elif is_out_of_range:
                self._find_start(copy)
            elif data.error_code != ErrorCode.NONE:
                self._delay(copy)
            elif is_parted:
                self._set_aside(copy)
                copying.truncate_to_leader(
                    self._replicas,
                    partition,
                    data.diverging_epoch.epoch,
                    data.diverging_epoch.end_offset,
                    data.log_start_offset,
                    lambda: self._take_back(copy),
                )
            else:
                if partition in self._replicas.copied_anew:
                    self._replicas.on_copied(partition)
                records = data.records
                # What answers an earlier fetch begins before where we are, and may even end before our log starts.
                asked_offset = copy.told[0] if copy.told is not None and copy.told_since <= number else -1
                if records is not None and len(records) and asked_offset == partition.log.log_end_offset:
                    copying.append_from_leader(self._replicas, partition, records)
                    if self._replicas.throttles.follows_throttled(partition):
                        self._replicas.throttles.follower.record(len(records))
                partition.follow_watermark(data.high_watermark, data.log_start_offset)
                copy.delay_ms = FIRST_DELAY_MS
                self._moved(copy)
                if self._replicas.throttles.follower_holds_back(partition, data.high_watermark):
                    self._set_aside(copy)
                    self._outbox.after(HELD_BACK_MS, lambda: self._hold_back(copy, data.high_watermark))
        except StorageError as error:
            self._replicas.disk_failed(partition, error)
        except CorruptionError as error:
            self._replicas.on_damage(partition, str(error))  # it is our own log that cannot be read
            self._delay(copy)
        except KafkaError as error:
            # Bytes that came damaged are asked for again; they never reach the log.
            self._outbox.tell(
                "replica-fetch-refused", "warning", partition=repr(partition), leader=self._leader_id, reason=str(error)
            )
            self._delay(copy)

    def _hold_back(self, copy: _Copy, high_watermark: int) -> None:
        """Leave a throttled partition out for as long as more was taken than may be (KIP-73)."""
        if self._replicas.throttles.follower_holds_back(copy.partition, high_watermark):
            self._outbox.after(HELD_BACK_MS, lambda: self._hold_back(copy, high_watermark))
        else:
            self._take_back(copy)

    def _moved(self, copy: _Copy) -> None:
        key = (copy.partition.topic_id, copy.partition.index)
        if copy.told != copy.position() and self._copies.get(key) is copy:  # its disk may have failed just now
            self._changed[key] = None

    def _delay(self, copy: _Copy) -> None:
        """Leave a partition out for a moment; metadata that explains the refusal is usually on its way."""
        self._set_aside(copy)
        self._outbox.after(copy.delay_ms, lambda: self._take_back(copy))
        copy.delay_ms = min(copy.delay_ms * 2, self._replicas.config.replica_fetch_backoff_ms)

    def _set_aside(self, copy: _Copy) -> None:
        key = (copy.partition.topic_id, copy.partition.index)
        if self._copies.get(key) is copy:
            self._delayed.add(key)
        self._changed.pop(key, None)
        if copy.told is not None:
            copy.told = None
            self._forgotten[key] = None

    def _take_back(self, copy: _Copy) -> None:
        key = (copy.partition.topic_id, copy.partition.index)
        if self._copies.get(key) is copy and key in self._delayed:
            self._delayed.discard(key)
            self._forgotten.pop(key, None)
            self._changed[key] = None
            self._schedule()

    # --- a log that does not overlap with the leader's ---

    def _find_start(self, copy: _Copy) -> None:
        """Ask where the leader's log starts and ends, then begin inside it."""
        address = self._address(self._leader_id)
        if address is None:
            self._delay(copy)
            return
        self._set_aside(copy)
        partition = copy.partition
        wanted = [
            ListOffsetsPartition(
                partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=timestamp
            )
            for timestamp in (EARLIEST_LOCAL, LATEST)
        ]
        found: list[int] = []
        is_refused = False

        def answered(response: Any, error: str | None) -> None:
            nonlocal is_refused
            if is_refused or self._copies.get((partition.topic_id, partition.index)) is not copy:
                return  # another leads now, or this one in another epoch: this is not said of its log
            if error is not None or response.topics[0].partitions[0].error_code:
                is_refused = True
                self._delay(copy)  # it will be refused again, and we ask again
                return
            found.append(response.topics[0].partitions[0].offset)
            if len(found) == len(wanted) and partition.role is Role.FOLLOWER:
                copying.start_within(self._replicas, partition, found[0], found[1], lambda: self._take_back(copy))

        for one in wanted:
            request = ListOffsetsRequest(
                replica_id=self._node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[one])]
            )
            timeout_ms = self._replicas.config.replica_socket_timeout_ms
            self._outbox.send(
                address, SIDE_CHANNEL, ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request, timeout_ms, answered
            )
