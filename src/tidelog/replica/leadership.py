"""What a leader knows of its followers: how far each is, who may be counted on, and where the watermark may go.

A follower's fetch offset is its acknowledgement: it holds everything below. The ISR is the controller's; the leader
proposes (AlterPartition, KIP-497) and meanwhile counts on the larger of the two sets:

    committed ISR {1,2}  + growth by 3 in flight  -> the watermark waits for 1, 2 and 3
    committed ISR {1,2,3} + shrink of 3 in flight -> the watermark still waits for 1, 2 and 3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidelog.replica.partition import Partition

NEVER_MS = -(2**62)
"""Before any time: a follower that was never seen."""


class FetchStream(Protocol):
    """The stream of fetches of a follower."""

    last_used_ms: int
    """When its last fetch came."""

    def taken_over(self, partition: Partition) -> None:
        """A fetch of another stream told where the follower's replica of a partition ends."""


class FollowerProgress:
    """One follower as its leader knows it."""

    __slots__ = (
        "broker_epoch",
        "dropped_for",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "sent_offset",
        "session",
    )

    def __init__(self, last_caught_up_ms: int) -> None:
        self.log_end_offset = -1
        """Where its log ends; -1 until it has fetched from this leader in this epoch."""
        self.log_start_offset = -1
        self.last_caught_up_ms = last_caught_up_ms
        """When it last had all that the leader had at some moment."""
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end_offset = 0
        self.broker_epoch = -1
        self.dropped_for = ""
        """Why this leader wanted it out of the ISR the last time, if it did."""
        self.sent_offset = -1
        """Where the records that it was sent last begin."""
        self.session: FetchStream | None = None
        """The stream it fetches by: an incremental fetch says nothing of partitions where nothing is new."""

    def leader_appended(self, old_end_offset: int) -> None:
        """The leader's log grows: one that had all of it so far had it when it was last heard of."""
        if self.log_end_offset == old_end_offset and self.session is not None:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.session.last_used_ms)

    def fetched(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """Take note of a fetch. One that asks for what the leader had at the fetch before was caught up then."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has everything, or had it recently enough."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms


class Leadership:
    """One leader epoch of one partition, seen by its leader."""

    __slots__ = (
        "_is_eligible",
        "epoch",
        "epoch_start_offset",
        "followers",
        "isr",
        "node_id",
        "partition_epoch",
        "proposed",
        "replicas",
    )

    def __init__(
        self,
        node_id: int,
        epoch: int,
        epoch_start_offset: int,
        is_eligible: Callable[[int, int], bool],
    ) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.epoch_start_offset = epoch_start_offset
        """Where the log ended when this epoch began: a follower behind it may still have to cut its log."""
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """As the controller committed it. Invariant: it has this node."""
        self.proposed: tuple[int, ...] | None = None
        """The ISR in an AlterPartition that is under way; at most one."""
        self.followers: dict[int, FollowerProgress] = {}
        self._is_eligible = is_eligible
        """Whether a broker (id, epoch it fetched with) may join an ISR: alive, not stopping, not an earlier life."""

    def update(self, replicas: Sequence[int], isr: Sequence[int], partition_epoch: int, now_ms: int) -> None:
        """Take over what the controller committed; a proposal made before is settled by it."""
        self.replicas = tuple(replicas)
        if partition_epoch > self.partition_epoch:
            self.proposed = None
        self.partition_epoch = partition_epoch
        self.isr = tuple(isr)
        for broker_id in isr:
            if broker_id in self.followers:
                self.followers[broker_id].dropped_for = ""
        for broker_id in replicas:
            if broker_id != self.node_id and broker_id not in self.followers:
                # A member of the ISR starts with a full grace, so that a new leader does not shrink it at once.
                self.followers[broker_id] = FollowerProgress(now_ms if broker_id in isr else NEVER_MS)
        for broker_id in [one for one in self.followers if one not in self.replicas]:
            del self.followers[broker_id]

    def refused(self) -> None:
        """The controller does not want the proposal; the others come first the next time, if any may join."""
        for broker_id in self.proposed or ():
            if broker_id in self.followers and broker_id not in self.isr:
                self.followers[broker_id] = self.followers.pop(broker_id)
        self.proposed = None

    @property
    def maximal_isr(self) -> set[int]:
        """Everyone who may be in the ISR once what is under way is settled."""
        return {*self.isr, *(self.proposed or ())}

    def high_watermark(
        self, own_end_offset: int, leader_end_offset: int, min_isr: int, now_ms: int, max_lag_ms: int
    ) -> int | None:
        """Where the watermark may be now; None while too few are in sync for it to move (KIP-966)."""
        if len(self.isr) < min(min_isr, len(self.replicas)):
            return None
        least = own_end_offset
        maximal = self.isr if self.proposed is None else self.maximal_isr
        for broker_id, follower in self.followers.items():
            if follower.log_end_offset < least and (
                broker_id in maximal
                # One that is about to join must not find the watermark beyond its own log.
                or (
                    follower.is_caught_up(leader_end_offset, now_ms, max_lag_ms)
                    and self._is_eligible(broker_id, follower.broker_epoch)
                )
            ):
                least = follower.log_end_offset
        return least

    def grown_isr(self, broker_id: int, high_watermark: int) -> tuple[int, ...] | None:
        """The ISR with a follower that has earned it; None when it has not, or a proposal is under way.

        It must have the committed records and everything up to the start of this epoch: below that its log may still
        differ from ours.
        """
        follower = self.followers.get(broker_id)
        if (
            self.proposed is not None
            or follower is None
            or broker_id in self.isr
            or follower.log_end_offset < max(high_watermark, self.epoch_start_offset)
            or not self._is_eligible(broker_id, follower.broker_epoch)
        ):
            return None
        return (*self.isr, broker_id)

    def lagging(self, leader_end_offset: int, now_ms: int, max_lag_ms: int, max_lag_messages: int) -> list[int]:
        """Members of the ISR that no longer keep up; nobody while a proposal is under way."""
        if self.proposed is not None:
            return []
        return [
            broker_id
            for broker_id in self.isr
            if broker_id in self.followers
            and not self.keeps_up(broker_id, leader_end_offset, now_ms, max_lag_ms, max_lag_messages)
        ]

    def why_lagging(
        self, broker_id: int, leader_end_offset: int, now_ms: int, max_lag_ms: int, max_lag_messages: int
    ) -> str:
        """What a follower that does not keep up is to be thrown out for, in words."""
        follower = self.followers[broker_id]
        if follower.log_end_offset < 0:
            where = "it has not fetched from this leader"
        else:
            where = f"log end {follower.log_end_offset} of {leader_end_offset}"
        if follower.is_caught_up(leader_end_offset, now_ms, max_lag_ms):
            return f"follower {broker_id} is more than {max_lag_messages} records behind, {where}"
        return f"follower {broker_id} lagged {(now_ms - follower.last_caught_up_ms) / 1000:.1f} s behind, {where}"

    def why_joining(self, broker_id: int, leader_end_offset: int) -> str:
        """What a follower is to be taken in for, in words."""
        end_offset = self.followers[broker_id].log_end_offset
        return f"follower {broker_id} caught up, log end {end_offset} of {leader_end_offset}"

    def keeps_up(
        self, broker_id: int, leader_end_offset: int, now_ms: int, max_lag_ms: int, max_lag_messages: int
    ) -> bool:
        """Whether a follower is near enough: by time, and by count where that old rule is switched on."""
        follower = self.followers[broker_id]
        is_too_far = 0 <= max_lag_messages < leader_end_offset - follower.log_end_offset
        return follower.is_caught_up(leader_end_offset, now_ms, max_lag_ms) and not is_too_far
