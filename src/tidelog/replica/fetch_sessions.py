"""Fetch sessions (KIP-227): what a reader follows, and which of it may have something new.

A session remembers its partitions, so an incremental fetch names only what changed; and it watches them, so that a
fetch looks only at its `dirty` partitions. At thousands of idle partitions that is the difference between nothing
and a third of a core. A fetch without a session is a session that lives for one request.

    request's (session id, epoch)      what it means
    (0, -1)                            no session: everything named is read
    (0, 0)                             open a session, everything named is read
    (id, 0)                            close that one and open another
    (id, n > 0)                        the next fetch of the session; n counts up, from 1 after 2^31 - 1
    (id, -1)                           close the session; everything named is read
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Chance
from tidelog.replica.partition import Partition

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EVICTION_AGE_MS = 120_000
"""A session idle for longer may be evicted to make room for another, as in Kafka."""


class ParkedFetch(Protocol):
    """A fetch that waits for its session's partitions."""

    def changed(self, new_bytes: int) -> None:
        """A partition of the session has news."""

    def finish(self) -> None:
        """Answer now, with whatever there is."""


class FetchEntry:
    """One partition of a session: what the reader asked for last, and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.partition: Partition | None = None
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.fetch_offset = 0
        self.max_bytes = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.log_start_offset = -1

    def update(self, wanted: Any) -> None:
        """Take over what a FetchPartition of a request asks."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset


class FetchSession:
    """The partitions of one reader; `dirty` holds, in the order they are to be served, those worth a look."""

    __slots__ = (
        *("by_partition", "dirty", "entries", "epoch", "is_follower", "last_used_ms", "parked", "session_id"),
        "to_note",
    )

    def __init__(self, session_id: int, is_follower: bool, now_ms: int) -> None:
        self.session_id = session_id
        """0: lives for one request only."""
        self.epoch = 1
        """The epoch that the next request must carry."""
        self.is_follower = is_follower
        self.last_used_ms = now_ms
        self.entries: dict[tuple[str | bytes, int], FetchEntry] = {}
        """By (topic name or id, index), whichever the request's version speaks of."""
        self.by_partition: dict[Partition, FetchEntry] = {}
        self.dirty: dict[FetchEntry, None] = {}
        """Invariant: an entry outside it has no records to send and told its reader the present watermark or a
        newer one than the reader needs at once."""
        self.parked: ParkedFetch | None = None
        self.to_note: dict[FetchEntry, None] = {}
        """Of a follower: partitions of which another of its sessions told something since this one did. That may have
        been a fetch it had given up, come late by a connection that was gone: the next one says again what is so."""

    def taken_over(self, partition: Partition) -> None:
        """Another session of the same follower told where its replica ends."""
        entry = self.by_partition.get(partition)
        if entry is not None:
            self.to_note[entry] = None

    def partition_changed(self, partition: Partition, new_bytes: int) -> None:
        """A watched partition has news."""
        entry = self.by_partition.get(partition)
        if entry is not None:
            self.dirty[entry] = None
            if self.parked is not None:
                self.parked.changed(new_bytes)

    def watermark_moved(self, partition: Partition) -> None:
        """The next answer tells the new watermark; a reader that waits for bytes is not woken for it."""
        entry = self.by_partition.get(partition)
        if entry is not None:
            self.dirty[entry] = None

    def interrupt(self) -> None:
        """The reader asks again while its last fetch is still parked: that one is answered with what there is."""
        if self.parked is not None:
            self.parked.finish()

    def update(self, topics: list[Any], forgotten: list[Any], by_id: bool, name_of: Callable[[bytes], str]) -> None:
        """Add and change what a request names, drop what it forgets."""
        for topic in topics:
            key: str | bytes = topic.topic_id if by_id else topic.topic
            name = name_of(topic.topic_id) if by_id else topic.topic
            for wanted in topic.partitions:
                entry = self.entries.get((key, wanted.partition))
                if entry is None:
                    entry = FetchEntry(name, topic.topic_id, wanted.partition)
                    self.entries[(key, wanted.partition)] = entry
                elif not entry.topic:
                    entry.topic = name
                entry.update(wanted)
                if self.is_follower:
                    # It has two fetches under way at times, and what the first is told of a log that was cut, or that
                    # another led meanwhile, counts for nothing with it.
                    entry.sent_high_watermark = entry.sent_log_start_offset = -1
                self.dirty[entry] = None
        for topic in forgotten:
            key = topic.topic_id if by_id else topic.topic
            for index in topic.partitions:
                entry = self.entries.pop((key, index), None)
                if entry is not None:
                    self.dirty.pop(entry, None)
                    self.to_note.pop(entry, None)
                    self._unwatch(entry)

    def watch(self, entry: FetchEntry, partition: Partition | None) -> None:
        """Follow the replica that an entry means now (it may have been made anew)."""
        if entry.partition is partition:
            return
        self._unwatch(entry)
        entry.partition = partition
        if partition is not None:
            (partition.end_watchers if self.is_follower else partition.watchers)[self] = None
            self.by_partition[partition] = entry

    def _unwatch(self, entry: FetchEntry) -> None:
        if entry.partition is not None:
            (entry.partition.end_watchers if self.is_follower else entry.partition.watchers).pop(self, None)
            self.by_partition.pop(entry.partition, None)
            entry.partition = None

    def close(self) -> None:
        """Stop watching everything."""
        for entry in self.entries.values():
            self._unwatch(entry)
        self.entries.clear()
        self.dirty.clear()
        self.to_note.clear()


class FetchSessions:
    """The sessions of one node, at most `max.incremental.fetch.session.cache.slots` of them."""

    def __init__(self, slots: int, chance: Chance) -> None:
        self._slots = slots
        self._chance = chance
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, session_id: int, epoch: int, is_follower: bool, now_ms: int) -> tuple[FetchSession, bool]:
        """The session that a request belongs to, and whether the request is incremental."""
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            old = self._sessions.pop(session_id, None)
            if old is not None:
                old.close()
            if epoch == FINAL_EPOCH:
                return FetchSession(0, is_follower, now_ms), False
            return self._open(is_follower, now_ms), False
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        session.last_used_ms = now_ms
        return session, True

    def _open(self, is_follower: bool, now_ms: int) -> FetchSession:
        if len(self._sessions) >= self._slots and not self._evict_one(is_follower, now_ms):
            return FetchSession(0, is_follower, now_ms)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._chance.below(2**31 - 1) + 1
        session = FetchSession(session_id, is_follower, now_ms)
        self._sessions[session_id] = session
        return session

    def _evict_one(self, for_follower: bool, now_ms: int) -> bool:
        """Make room: the longest idle session past its age, or any consumer's for a follower."""
        candidates = [
            one
            for one in self._sessions.values()
            if one.parked is None
            and (now_ms - one.last_used_ms > EVICTION_AGE_MS or (for_follower and not one.is_follower))
        ]
        if not candidates:
            return False
        victim = min(candidates, key=lambda one: one.last_used_ms)
        del self._sessions[victim.session_id]
        victim.close()
        return True
