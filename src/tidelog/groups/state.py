"""All groups and offsets of one partition of `__consumer_offsets`, as its leader holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.config import GroupConfig, NodeConfig
from tidelog.coordination.shard import Answer, KeyAndValue, Shard
from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.groups import records
from tidelog.groups.classic.group import ClassicGroup
from tidelog.groups.consumer import replay as consumer_replay
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.offsets import CommittedOffset, Offsets
from tidelog.groups.positions import Positions
from tidelog.groups.topics import Topics
from tidelog.outbox import Outbox
from tidelog.wire.batch import BatchHeader
from tidelog.wire.records.group_metadata import GroupMetadataKey
from tidelog.wire.records.offset_commit import OffsetCommitKey
from tidelog.wire.stored import decode_group_record

Group = ClassicGroup | ConsumerGroup
MAX_WAITING_ANSWERS = 10_000
"""Answers of one shard that may wait for their records to be committed; a further request is told to try again."""

FAILED_WRITES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a member is told when the coordinator's own write failed."""


class GroupsState:
    """What a shard keeps. Requests are decided by the modules beside this one, which write through `write`."""

    def __init__(
        self,
        outbox: Outbox,
        config: Callable[[], NodeConfig],
        topics: Topics,
        shard: Callable[[], Shard],
        overrides: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._overrides = overrides
        self.outbox = outbox
        self.topics = topics
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.positions = Positions()
        self._config = config
        self._shard = shard
        self._waiting = 0
        self._expiry: Any = None
        self.is_active = False

    @property
    def config(self) -> NodeConfig:
        """The settings in force now."""
        return self._config()

    def group_config(self, group_id: str) -> GroupConfig:
        """What is in force for one group."""
        return GroupConfig.from_overrides(self._overrides(group_id), self._config())

    # --- writing ---

    def write(self, content: Sequence[KeyAndValue], answer: Answer, **batch: Any) -> None:
        """Append and apply records; `answer` hears once that they, and all before them, are committed, or are not known
        to be. Raises KafkaError, with a code for members, when nothing was written.
        """
        if self._waiting >= MAX_WAITING_ANSWERS:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too many answers wait for their records")
        self._waiting += 1
        answered = False
        timer: Any = None

        def finished(code: ErrorCode) -> None:
            self._waiting -= 1
            give(code)

        def give(code: ErrorCode) -> None:
            nonlocal answered
            if not answered:
                answered = True
                if timer is not None:
                    timer.cancel()
                answer(code)

        try:
            codec = self.config.offsets_topic_compression_codec
            self._shard().write(content, finished, compression=codec, **batch)
        except KafkaError as error:
            self._waiting -= 1
            raise KafkaError(FAILED_WRITES.get(error.code, error.code), error.message) from None
        if not answered:
            timeout_ms = self.config.offsets_commit_timeout_ms
            timer = self.outbox.after(timeout_ms, lambda: give(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def when_committed(self, answer: Answer) -> None:
        """Answer without writing, when what the answer rests on is committed."""
        self.write((), answer)

    def save(self, group: ClassicGroup, assignments: dict[str, bytes], answer: Answer) -> None:
        """Write a classic group's record."""
        self.write([records.group_metadata(group.group_id, group.to_value(assignments))], answer)

    # --- groups ---

    def create_classic(self, group_id: str) -> ClassicGroup:
        """A new, empty group."""
        group = ClassicGroup(group_id, self.outbox.now_ms)
        self.groups[group_id] = group
        return group

    # --- what a shard asks of its state ---

    def replay(self, key: bytes, value: bytes | None, timestamp_ms: int, batch: BatchHeader | None) -> None:
        """Apply one record. Records of a kind, or of a form, that is not known here are passed over, as Kafka does."""
        try:
            decoded = decode_group_record(key, value)
        except DecodeError as error:
            self.outbox.tell("group-record-unreadable", "warning", reason=str(error))
            return
        if decoded is None:
            return
        kind, content = decoded
        if isinstance(kind, OffsetCommitKey):
            self._replay_offset(kind, content, batch)
        elif isinstance(kind, GroupMetadataKey):
            self._replay_group(kind.group, content, is_own=batch is None)
        else:
            consumer_replay.replay(self, kind, content)

    def _replay_offset(self, key: OffsetCommitKey, value: Any, batch: BatchHeader | None) -> None:
        if value is None:
            self.offsets.delete(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.create_classic(key.group)
        committed = CommittedOffset(
            value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp
        )
        if batch is not None and batch.is_transactional:
            self.offsets.commit_pending(batch.producer_id, key.group, key.topic, key.partition, committed)
        else:
            self.offsets.commit(key.group, key.topic, key.partition, committed)

    def _replay_group(self, group_id: str, value: Any, *, is_own: bool) -> None:
        if value is None:
            group = self.groups.get(group_id)
            if isinstance(group, ClassicGroup):
                group.stop_timers()
                del self.groups[group_id]
        elif not is_own:
            # What this coordinator writes itself is in memory already, with the requests that wait for it.
            self.groups[group_id] = ClassicGroup.from_value(group_id, value)

    def replay_end_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """A transaction with offsets here ended."""
        self.offsets.end_transaction(producer_id, is_commit)

    def loaded(self) -> None:
        """Sessions begin anew for members of groups that another coordinator looked after."""
        from tidelog.groups.classic import rebalance
        from tidelog.groups.consumer import sessions
        from tidelog.groups.expiry import Expiry

        self.is_active = True
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                rebalance.after_load(self, group)
            else:
                sessions.after_load(self, group)
        self._expiry = Expiry(self)
        self._expiry.start()

    def closed(self) -> None:
        """Whoever waits here is sent to look for the new coordinator."""
        from tidelog.groups.classic import rebalance

        self.is_active = False
        if self._expiry is not None:
            self._expiry.stop()
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                rebalance.turn_away(group)
            group.stop_timers()
