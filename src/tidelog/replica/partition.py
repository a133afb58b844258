"""One replica of one partition, as this node holds it.

    OFFLINE   -> LEADER | FOLLOWER      its directory came back, or it was opened
    FOLLOWER <-> LEADER                 the metadata log says so; the leader epoch never goes back
    any       -> OFFLINE                its directory failed, or the replica is deleted

Everything a request can wait for here is an offset: that it is on this disk (`when_durable`) or committed
(`when_committed`). Readers that want to hear of new bytes are watchers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from tidelog.config import NodeConfig, TopicConfig
from tidelog.errors import ErrorCode, KafkaError
from tidelog.log import Appended, Log
from tidelog.outbox import Outbox
from tidelog.replica.leadership import FetchStream, Leadership
from tidelog.replica.read_again import ReadAgain

Acknowledge = Callable[[ErrorCode], None]
"""Called once: with NONE when the offset is there, or with why it will not be."""


class Role(Enum):
    """What this node is to the partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    OFFLINE = "offline"


class Watcher(Protocol):
    """Something that wants to know when there may be more to read."""

    def partition_changed(self, partition: Partition, new_bytes: int) -> None:
        """New bytes are visible, or the role, the start or the high watermark changed (`new_bytes` may be 0)."""

    def watermark_moved(self, partition: Partition) -> None:
        """The high watermark moved, for one that sees all there is anyway: worth telling with the next answer."""


class Surroundings:
    """What all replicas of a node share: the time, the settings, and who may be counted on."""

    __slots__ = ("config", "is_eligible", "outbox")

    def __init__(self, outbox: Outbox, config: NodeConfig, is_eligible: Callable[[int, int], bool]) -> None:
        self.outbox = outbox
        self.config = config
        self.is_eligible = is_eligible
        """Whether a broker, in the life it fetched with, may join an ISR."""


class Partition:
    """A hosted replica: its log, its role, and who waits on it."""

    __slots__ = (
        "_committed_waiters",
        "_durable_waiters",
        "_surroundings",
        "config",
        "directory_id",
        "end_watchers",
        "high_watermark",
        "index",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "node_id",
        "read_again",
        "role",
        "topic",
        "topic_id",
        "unflushed_cuts",
        "unflushed_from",
        "watchers",
    )

    def __init__(
        self,
        node_id: int,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        config: TopicConfig,
        high_watermark: int,
        directory_id: bytes,
        surroundings: Surroundings,
    ) -> None:
        self.node_id = node_id
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.config = config
        self.directory_id = directory_id
        self.role = Role.FOLLOWER
        self.leader_id = -1
        self.leader_epoch = -1
        self.leadership: Leadership | None = None
        """Invariant: there exactly while the role is LEADER."""
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        """Exclusive. Invariant: log_start_offset <= high_watermark <= log_end_offset; on a leader it never goes back.
        A checkpoint ahead of the log is not trusted."""
        self.unflushed_from: int | None = None
        """First offset that a flush setting says must be on disk before it counts, while that flush is under way."""
        self.unflushed_cuts: list[int] = []
        """Where the log was cut, until that is on the medium: a power loss may bring back what was there."""
        self.watchers: dict[Watcher, None] = {}
        """Consumers: they see what is committed."""
        self.end_watchers: dict[Watcher, None] = {}
        """Followers: they see all there is."""
        self.read_again = ReadAgain()
        self._surroundings = surroundings
        self._committed_waiters: deque[tuple[int, Acknowledge]] = deque()
        self._durable_waiters: deque[tuple[int, Acknowledge]] = deque()

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # --- roles ---

    def become_leader(
        self, leader_epoch: int, partition_epoch: int, replicas: Sequence[int], isr: Sequence[int]
    ) -> None:
        """Lead from this epoch on, or take over a change within it. The epoch starts where the log ends now."""
        leadership = self.leadership
        if leadership is None or leadership.epoch != leader_epoch:
            self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            end_offset = self.log.log_end_offset
            self.log.assign_epoch(leader_epoch, end_offset)
            leadership = Leadership(self.node_id, leader_epoch, end_offset, self._surroundings.is_eligible)
            self.leadership = leadership
            self.role = Role.LEADER
            self.leader_id = self.node_id
            self.leader_epoch = leader_epoch
        elif partition_epoch < leadership.partition_epoch:
            return  # an answer of the controller told us of a newer state already
        leadership.update(replicas, isr, partition_epoch, self._surroundings.outbox.now_ms)
        self.advance_high_watermark()
        self._notify(self.watchers, 0)
        self._notify(self.end_watchers, 0)

    def become_follower(self, leader_id: int, leader_epoch: int) -> None:
        """Follow a leader, or wait for one (-1)."""
        self.role = Role.FOLLOWER
        self.leadership = None
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self._fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._notify(self.watchers, 0)
        self._notify(self.end_watchers, 0)

    def go_offline(self, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """The directory failed or the replica is going away: whoever waits is told now."""
        self.role = Role.OFFLINE
        self.leadership = None
        self._fail_waiters(code)
        self._notify(self.watchers, 0)
        self._notify(self.end_watchers, 0)  # they go on watching: a damaged replica may be back

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise unless this node leads and the caller's idea of the epoch, when it has one (KIP-320), is right."""
        if self.role is Role.OFFLINE:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self} is in an offline log directory")
        self.check_epoch(current_leader_epoch)
        if self.role is not Role.LEADER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led by node {self.leader_id}")

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Compare a caller's leader epoch with ours; -1 means that it does not know one."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{self} is at leader epoch {self.leader_epoch}")
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self} is still at leader epoch {self.leader_epoch}")

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed readers see: the watermark, or the first open transaction below it."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_watermark_stale(self) -> bool:
        """After an election: the watermark may lie before what readers were already given (KIP-207)."""
        return self.leadership is not None and self.high_watermark < self.leadership.epoch_start_offset

    def diverging_epoch(
        self, last_fetched_epoch: int, fetch_offset: int, follower_start_offset: int | None = None
    ) -> tuple[int, int] | None:
        """Where this log parts from a reader's, when it does: the epoch and its end offset here (KIP-320, KIP-595).

        A follower that has records of an epoch which is deleted here, and asks for our very first, may have parted
        from us anywhere before it: that is no place to go on from.
        """
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self}: epoch {last_fetched_epoch} is not known here")
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        if (
            follower_start_offset is not None
            and follower_start_offset < fetch_offset == end_offset == self.log.log_start_offset
            and epoch < self.log.epochs[0][0]
        ):
            return epoch, end_offset
        return None

    # --- writing ---

    def check_enough_replicas(self) -> None:
        """Raise when acks=all could not be honoured: fewer in-sync replicas than min.insync.replicas asks for."""
        leadership, wanted = self.leadership, self.config.min_insync_replicas
        if leadership is not None and len(leadership.isr) < min(wanted, len(leadership.replicas)):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(leadership.isr)} replicas in sync, min.insync.replicas is {wanted}",
            )

    def append(self, data: memoryview, now_ms: int) -> Appended:
        """Append a producer's batches as leader. The caller asks `flush_is_due` next and advances the watermark."""
        end_offset = self.log.log_end_offset
        appended = self.log.append_as_leader(data, self.leader_epoch, now_ms)
        if not appended.duplicate:
            self._credit_followers(end_offset)
        return appended

    def append_marker(self, data: memoryview, now_ms: int, transaction_version: int) -> Appended:
        """Append the end of a transaction as leader; raises KafkaError when it is a zombie's."""
        end_offset = self.log.log_end_offset
        appended = self.log.append_as_leader(
            data, self.leader_epoch, now_ms, is_internal=True, transaction_version=transaction_version
        )
        self._credit_followers(end_offset)
        return appended

    def _credit_followers(self, end_offset: int) -> None:
        """The log grows: those who follow it by a session, and had it all, had it when that was used last."""
        if self.leadership is not None:
            for follower in self.leadership.followers.values():
                session: object = follower.session
                if session in self.end_watchers:
                    follower.leader_appended(end_offset)

    @property
    def flush_is_due(self) -> bool:
        """Whether flush.messages says that what is in the log must reach the disk before it counts."""
        return self.log.log_end_offset - self.log.recovery_point >= self.config.flush_messages

    @property
    def durable_end_offset(self) -> int:
        """Where this replica's log counts to: all of it, or up to what a mandated flush still has in hand."""
        end_offset = self.log.log_end_offset
        return end_offset if self.unflushed_from is None else min(self.unflushed_from, end_offset)  # it may be cut

    @property
    def kept_high_watermark(self) -> int:
        """The watermark for the next life: it covers nothing that may be other records by then."""
        return min((self.high_watermark, *self.unflushed_cuts))

    def advance_high_watermark(self) -> None:
        """Move the watermark as far as the in-sync replicas allow, and wake whoever waited for it."""
        leadership = self.leadership
        if leadership is None:
            return
        own_end_offset = self.durable_end_offset
        while self._durable_waiters and self._durable_waiters[0][0] <= own_end_offset:
            self._durable_waiters.popleft()[1](ErrorCode.NONE)
        new = leadership.high_watermark(
            own_end_offset,
            self.log.log_end_offset,
            self.config.min_insync_replicas,
            self._surroundings.outbox.now_ms,
            self._surroundings.config.replica_lag_time_max_ms,
        )
        old = self.high_watermark
        if new is None or new <= old:
            return
        self.high_watermark = new
        while self._committed_waiters and self._committed_waiters[0][0] <= new:
            self._committed_waiters.popleft()[1](ErrorCode.NONE)
        for watcher in self.end_watchers:
            watcher.watermark_moved(self)
        if self.watchers:
            self._notify(self.watchers, self.log.bytes_between(old, new))

    def follower_fetched(
        self, broker_id: int, broker_epoch: int, session: FetchStream, fetch_offset: int, log_start_offset: int
    ) -> tuple[int, ...] | None:
        """A follower's fetch says what it has. Returns the ISR to propose when it has earned its place."""
        self.check_follower(broker_id)
        leadership = self.leadership
        assert leadership is not None
        follower = leadership.followers[broker_id]
        now_ms = self._surroundings.outbox.now_ms
        follower.fetched(fetch_offset, log_start_offset, self.log.log_end_offset, broker_epoch, now_ms)
        if follower.session is not None and follower.session is not session:
            follower.session.taken_over(self)
        follower.session = session
        self.advance_high_watermark()
        if self.leadership is not leadership:
            return None  # whoever waited for the watermark wrote on, and the disk failed
        return leadership.grown_isr(broker_id, self.high_watermark)

    def check_follower(self, broker_id: int) -> None:
        """Refuse a follower that is not one as far as this leader knows, so that it asks again.

        A reassignment adds replicas without a new epoch, and the follower may hear of it first: were its fetch served,
        nobody would know what it has, and with nothing more to fetch it would not ask again.
        """
        if self.leadership is None or broker_id not in self.leadership.followers:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"node {broker_id} has no replica of {self}")

    def lagging(self) -> list[int]:
        """Members of the ISR that do not keep up."""
        if self.leadership is None:
            return []
        config = self._surroundings.config
        return self.leadership.lagging(
            self.log.log_end_offset,
            self._surroundings.outbox.now_ms,
            config.replica_lag_time_max_ms,
            config.replica_lag_max_messages,
        )

    def why_lagging(self, broker_id: int) -> str:
        """Why a member of the ISR is to be dropped, in words; remembered for those who ask later."""
        assert self.leadership is not None
        config = self._surroundings.config
        reason = self.leadership.why_lagging(
            broker_id,
            self.log.log_end_offset,
            self._surroundings.outbox.now_ms,
            config.replica_lag_time_max_ms,
            config.replica_lag_max_messages,
        )
        self.leadership.followers[broker_id].dropped_for = reason
        return reason

    def keeps_up(self, broker_id: int) -> bool:
        """Whether a follower would stay in the ISR if it were in it."""
        if self.leadership is None:
            return False
        config = self._surroundings.config
        return self.leadership.keeps_up(
            broker_id,
            self.log.log_end_offset,
            self._surroundings.outbox.now_ms,
            config.replica_lag_time_max_ms,
            config.replica_lag_max_messages,
        )

    def follow_watermark(self, high_watermark: int, log_start_offset: int) -> None:
        """As a follower: take over the leader's watermark as far as our log goes, and its log start."""
        old = self.high_watermark
        if log_start_offset > self.log.log_start_offset:
            self.log.raise_log_start(min(log_start_offset, self.log.log_end_offset))
        self.high_watermark = max(self.log.log_start_offset, min(high_watermark, self.log.log_end_offset))
        if self.watchers and self.high_watermark > old:
            self._notify(self.watchers, self.log.bytes_between(old, self.high_watermark))

    def tell_followers(self, new_bytes: int) -> None:
        """The log grew: whoever copies it wants to know."""
        if self.end_watchers:
            self._notify(self.end_watchers, new_bytes)

    # --- waiting ---

    def when_committed(self, end_offset: int, acknowledge: Acknowledge) -> None:
        """Call back when the high watermark reaches `end_offset`; offsets come in the order of appends."""
        if self.role is Role.OFFLINE:
            acknowledge(ErrorCode.KAFKA_STORAGE_ERROR)  # the disk failed right after the append
        elif end_offset <= self.high_watermark:
            acknowledge(ErrorCode.NONE)
        else:
            self._committed_waiters.append((end_offset, acknowledge))

    def when_durable(self, end_offset: int, acknowledge: Acknowledge) -> None:
        """Call back when this replica's own log counts to `end_offset` (acks=1)."""
        if self.role is Role.OFFLINE:
            acknowledge(ErrorCode.KAFKA_STORAGE_ERROR)
        elif end_offset <= self.durable_end_offset:
            acknowledge(ErrorCode.NONE)
        else:
            self._durable_waiters.append((end_offset, acknowledge))

    def forget(self, acknowledge: Acknowledge) -> None:
        """Drop a waiter that gave up, so that a stuck watermark does not collect them."""
        for waiters in (self._committed_waiters, self._durable_waiters):
            for entry in [entry for entry in waiters if entry[1] is acknowledge]:
                waiters.remove(entry)

    def raise_log_start(self, offset: int) -> None:
        """Forget records below `offset` (DeleteRecords, retention)."""
        self.log.raise_log_start(offset)
        self.high_watermark = max(self.high_watermark, self.log.log_start_offset)
        self._notify(self.watchers, 0)
        self._notify(self.end_watchers, 0)

    def _notify(self, watchers: dict[Watcher, None], new_bytes: int) -> None:
        for watcher in list(watchers):
            watcher.partition_changed(self, new_bytes)

    def _fail_waiters(self, code: ErrorCode) -> None:
        for waiters in (self._committed_waiters, self._durable_waiters):
            while waiters:
                waiters.popleft()[1](code)
