"""One partition of a coordinator's topic, as its leader: state in memory, records in the log, answers when committed.

    LOADING -> ACTIVE     every record of the partition was replayed; until then COORDINATOR_LOAD_IN_PROGRESS, as where
                          the log is damaged and no other replica can lead
    LOADING | ACTIVE -> CLOSED     the partition is led elsewhere, or offline: NOT_COORDINATOR for whoever waits

Decide, then apply: a request's outcome is a list of records and an answer. The records are appended as one batch and
applied at once, so that the next request builds on them; the answer waits until they are committed, and so does an
answer without records, which may rest on what others have just written. When the leadership goes first the answers
are NOT_COORDINATOR, and the state is thrown away with the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.replica.partition import Partition
from tidelog.replica.replicas import Replicas
from tidelog.wire.batch import BatchHeader, Record, build_batch, check_crc, iterate_batches, iterate_records

KeyAndValue = tuple[bytes, bytes | None]
"""One record to write; None is a tombstone."""
Answer = Callable[[ErrorCode], None]
"""Called once: with NONE when everything it rests on is committed, else with why it never will be known here."""
LOAD_BYTES = 1 << 20
"""Read in one step while loading, so that a long log does not hold the node up."""


class CoordinatorState(Protocol):
    """What a shard keeps: changed by records and by nothing else."""

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int, batch: BatchHeader | None) -> None:
        """Apply one record; `batch` is its batch, but None for one just written outside of a transaction."""

    def replay_end_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """A transaction that wrote to this partition ended."""

    def loaded(self) -> None:
        """Everything was replayed: timers may start."""

    def closed(self) -> None:
        """The shard is gone: timers stop."""


class ShardStatus(Enum):
    """See the head of this file."""

    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class Shard:
    """A coordinator's state on one partition that this node leads."""

    __slots__ = ("_load_offset", "_replicas", "epoch", "partition", "state", "status")

    def __init__(self, partition: Partition, replicas: Replicas, state: CoordinatorState) -> None:
        self.partition = partition
        self.state = state
        self.epoch = partition.leader_epoch
        """The leader epoch this shard belongs to: it is also the coordinator's epoch."""
        self.status = ShardStatus.LOADING
        self._replicas = replicas
        self._load_offset = partition.log.log_start_offset

    # --- loading ---

    def load(self) -> None:
        """Replay the log, a part in each step."""
        if self.status is not ShardStatus.LOADING:
            return
        log = self.partition.log
        self._load_offset = max(self._load_offset, log.log_start_offset)  # it may have risen since the step before
        try:
            if self._load_offset < log.log_end_offset:
                found = log.read(self._load_offset, LOAD_BYTES, up_to_offset=log.log_end_offset)
                for part in found.parts:
                    for batch in iterate_batches(part.read()):
                        check_crc(batch)
                        self._replay_batch(batch)
                # Compaction may have left nothing up to the end of the log.
                self._load_offset = found.next_offset if found.parts else log.log_end_offset
        except StorageError as error:
            self._replicas.disk_failed(self.partition, error)
            return
        except KafkaError as error:
            # Rot: another replica is to lead. Where none is in sync this stays unread, rather than be made up.
            self._replicas.on_damage(self.partition, error.message)
            return
        if self._load_offset < log.log_end_offset:
            self._replicas.outbox.after(0, self.load)
            return
        self.status = ShardStatus.ACTIVE
        self.state.loaded()

    def _replay_batch(self, batch: BatchHeader) -> None:
        if batch.is_control:
            self._replay_control(batch)
            return
        for record in iterate_records(batch):
            if record.key is not None:
                self.state.replay(record.key, record.value, record.timestamp, batch)

    def _replay_control(self, batch: BatchHeader) -> None:
        from tidelog.wire.batch import ControlType, control_type

        for record in iterate_records(batch):
            kind = control_type(record.key)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                self.state.replay_end_marker(batch.producer_id, batch.producer_epoch, kind == ControlType.COMMIT)

    def close(self) -> None:
        """This node leads the partition no longer."""
        if self.status is not ShardStatus.CLOSED:
            self.status = ShardStatus.CLOSED
            self.state.closed()

    # --- deciding ---

    def check(self) -> None:
        """Raise what a client is told while this shard cannot answer."""
        if self.status is ShardStatus.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.status is ShardStatus.CLOSED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def write(self, records: Sequence[KeyAndValue], answer: Answer, **batch: Any) -> None:
        """Append the records, apply them, and answer when they are committed.

        `batch` are fields of a transactional batch (producer id, epoch and so on). Raises KafkaError when nothing was
        written.
        """
        self.check()
        partition, replicas = self.partition, self._replicas
        now_ms = replicas.outbox.now_ms
        if records:
            partition.check_leader()
            partition.check_enough_replicas()
            content = [Record(offset, now_ms, key, value) for offset, (key, value) in enumerate(records)]
            data = memoryview(bytearray(build_batch(content, **batch)))
            end_offset = partition.log.log_end_offset
            try:
                partition.log.append_as_leader(data, partition.leader_epoch, now_ms, is_internal=True)
            except StorageError as error:
                replicas.disk_failed(partition, error)
                raise KafkaError(ErrorCode.NOT_COORDINATOR, error.reason) from None
            if partition.leadership is not None:
                for follower in partition.leadership.followers.values():
                    follower.leader_appended(end_offset)
            header = next(iterate_batches(data)) if batch.get("is_transactional") else None
            for key, value in records:
                self.state.replay(key, value, now_ms, header)
            replicas.appended(partition, len(data))
        self.when_committed(answer)

    def when_committed(self, answer: Answer) -> None:
        """Answer when all that was written so far is committed."""
        self.partition.when_committed(
            self.partition.log.log_end_offset,
            lambda code: answer(code if code is ErrorCode.NONE else ErrorCode.NOT_COORDINATOR),
        )
