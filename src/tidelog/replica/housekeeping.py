"""What is done for the replicas now and then: checkpoints, retention, compaction, quiet producers, lag, positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from tidelog.errors import StorageError
from tidelog.replica import checkpoints
from tidelog.replica.cleaning import Cleaner
from tidelog.replica.partition import Role
from tidelog.replica.replicas import Replicas

COUNT_CHECK_INTERVAL_MS = 200
"""How often followers are looked at where replica.lag.max.messages is switched on."""
POSITIONS_INTERVAL_MS = 1_000
MAX_POSITIONS_TOLD = 1_000


class Housekeeping:
    """Periodic work over the replicas of one node; ends when they stop."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._outbox = replicas.outbox
        self._cleaner = Cleaner(replicas)

    def start(self) -> None:
        """Begin; each task comes back at its own setting's interval."""
        replicas, config = self._replicas, self._replicas.config
        self._every(
            config.replica_high_watermark_checkpoint_interval_ms, partial(checkpoints.write_high_watermarks, replicas)
        )
        self._every(
            config.log_flush_offset_checkpoint_interval_ms, partial(checkpoints.write_recovery_points, replicas)
        )
        self._every(
            config.log_flush_start_offset_checkpoint_interval_ms, partial(checkpoints.write_log_starts, replicas)
        )
        self._every(config.log_retention_check_interval_ms, self.forget_old_records)
        self._every(POSITIONS_INTERVAL_MS, self.tell_positions)
        self._every(config.producer_id_expiration_check_interval_ms, self.expire_producers)
        interval_ms = max(1, config.replica_lag_time_max_ms // 2)
        if config.replica_lag_max_messages >= 0:  # a burst is over before a rule by time would look
            interval_ms = min(interval_ms, COUNT_CHECK_INTERVAL_MS)
        self._every(interval_ms, self.check_isrs)
        self._cleaner.start()

    def _every(self, interval_ms: int, action: Callable[[], None]) -> None:
        def due() -> None:
            if not self._replicas.is_stopping:
                action()
                self._outbox.after(interval_ms, due)

        self._outbox.after(interval_ms, due)

    def forget_old_records(self) -> None:
        """Roll what is due by time and delete segments past retention, never above the high watermark."""
        for partition in list(self._replicas.partitions.values()):
            if partition.role is Role.OFFLINE:
                continue
            storage = self._replicas.directory_of(partition).storage
            try:
                before = partition.log.log_start_offset
                partition.log.roll_if_due(self._outbox.now_ms)
                if self._cleaner.is_cleaning(partition):
                    continue
                doomed = partition.log.delete_old_segments(self._outbox.now_ms, partition.high_watermark)
                if partition.log.log_start_offset != before:
                    partition.raise_log_start(partition.log.log_start_offset)
            except StorageError as error:
                self._replicas.storage_failed(storage, error)
                continue
            if doomed:
                self._replicas.delete_later(partition, doomed)

    def tell_positions(self) -> None:
        """Say where the partitions that moved stand, at most once a second each and a bounded number of them."""
        moved, self._replicas.moved = self._replicas.moved, {}
        for partition in islice(moved, MAX_POSITIONS_TOLD):
            if partition.role is Role.LEADER and not partition.topic.startswith("__"):
                followers = {} if partition.leadership is None else partition.leadership.followers
                self._outbox.tell_fields(
                    "replica-positions",
                    {
                        "topic": partition.topic,
                        "partition": partition.index,
                        "leader": self._replicas.node_id,
                        "leader_epoch": partition.leader_epoch,
                        "high_watermark": partition.high_watermark,
                        "log_end_offset": partition.log.log_end_offset,
                        "followers": {one: progress.log_end_offset for one, progress in followers.items()},
                    },
                    "debug",
                )

    def expire_producers(self) -> None:
        """Forget idempotent producers that were not heard of for producer.id.expiration.ms."""
        for partition in self._replicas.partitions.values():
            if partition.role is not Role.OFFLINE:
                partition.log.expire_producers(self._outbox.now_ms)

    def check_isrs(self) -> None:
        """Propose to drop followers that no longer keep up, and to take in those that do again."""
        for partition in self._replicas.partitions.values():
            lagging = partition.lagging()
            if lagging and partition.leadership is not None:
                isr = [one for one in partition.leadership.isr if one not in lagging]
                self._replicas.propose_isr(partition, isr, "; ".join(map(partition.why_lagging, lagging)))
            else:
                self._replicas.grow_isr(partition)
