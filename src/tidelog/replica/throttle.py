"""Throttled replication (KIP-73): moving replicas must not take the network from those who serve.

A topic names replicas to be throttled, as partition:broker, and each broker has a rate for both sides: what it sends as
a leader, and what it takes as a follower. While a side is over its rate the throttled replicas are left out of its
fetches, and everybody else goes on. A leader never holds back a replica that is in sync: the watermark waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from tidelog.config import NodeConfig
from tidelog.outbox import Outbox
from tidelog.replica.partition import Partition


class Throttle:
    """One side of one broker: bytes that went, against the bytes a second that may.

    What went is remembered for `window_count` windows of `window_ms` each: the longer, the longer a burst is paid for.
    """

    def __init__(self, outbox: Outbox, bytes_a_second: Callable[[], int], *, window_count: int, window_ms: int) -> None:
        self._outbox = outbox
        self._bytes_a_second = bytes_a_second
        self._window_count = window_count
        self._window_ms = window_ms
        self._windows: deque[list[int]] = deque()
        """Start and bytes of each window with any, oldest first."""

    def record(self, size: int) -> None:
        """Bytes of throttled replicas went."""
        now_ms = self._outbox.now_ms
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += size
        self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= self._window_count * self._window_ms:
            self._windows.popleft()

    @property
    def is_exceeded(self) -> bool:
        """Whether more went than may. The time is counted from the oldest window, and is a whole one at least."""
        now_ms = self._outbox.now_ms
        self._forget(now_ms)
        if not self._windows:
            return False
        elapsed_ms = max(now_ms - self._windows[0][0], self._window_ms)
        return sum(size for _, size in self._windows) * 1000 > self._bytes_a_second() * elapsed_ms


class ReplicationThrottles:
    """Both sides of this broker."""

    def __init__(self, node_id: int, outbox: Outbox, config: Callable[[], NodeConfig]) -> None:
        self._node_id = node_id
        window_count = config().replication_quota_window_num
        window_ms = config().replication_quota_window_size_seconds * 1000
        # The rates are dynamic: they are asked for each time. The windows are not.
        self.leader = Throttle(
            outbox,
            lambda: config().leader_replication_throttled_rate,
            window_count=window_count,
            window_ms=window_ms,
        )
        self.follower = Throttle(
            outbox,
            lambda: config().follower_replication_throttled_rate,
            window_count=window_count,
            window_ms=window_ms,
        )

    def leads_throttled(self, partition: Partition) -> bool:
        """Whether what this broker sends of a partition that it leads is counted."""
        return _names(partition.config.leader_replication_throttled_replicas, partition.index, self._node_id)

    def follows_throttled(self, partition: Partition) -> bool:
        """Whether what this broker takes of a partition that it follows is counted."""
        return _names(partition.config.follower_replication_throttled_replicas, partition.index, self._node_id)

    def leader_holds_back(self, partition: Partition, follower_id: int) -> bool:
        """Whether a follower gets nothing of a partition now: one that is in sync always gets what there is."""
        leadership = partition.leadership
        return (
            self.leads_throttled(partition)
            and leadership is not None
            and follower_id not in leadership.isr
            and self.leader.is_exceeded
        )

    def follower_holds_back(self, partition: Partition, leader_high_watermark: int) -> bool:
        """Whether this broker asks for nothing of a partition now: one that has what is committed goes on asking."""
        return (
            self.follows_throttled(partition)
            and partition.log.log_end_offset < leader_high_watermark
            and self.follower.is_exceeded
        )


def _names(entries: Sequence[str], index: int, node_id: int) -> bool:
    return bool(entries) and ("*" in entries or f"{index}:{node_id}" in entries)
