"""All groups and offsets of one partition of `__consumer_offsets`, as its leader holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.config import GroupConfig, NodeConfig
from tidelog.coordination.answers import WaitingAnswers
from tidelog.coordination.shard import Answer, KeyAndValue, Shard
from tidelog.errors import DecodeError
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
        self._usual_of = config()
        self._usual = GroupConfig.from_overrides({}, self._usual_of)
        """What is in force for a group that nothing was set for: every heartbeat asks."""
        self._answers = WaitingAnswers(outbox, shard, lambda: self.config.offsets_commit_timeout_ms)
        self._expiry: Any = None
        self.is_active = False

    @property
    def config(self) -> NodeConfig:
        """The settings in force now."""
        return self._config()

    def group_config(self, group_id: str) -> GroupConfig:
        """What is in force for one group."""
        overrides, config = self._overrides(group_id), self._config()
        if overrides:
            return GroupConfig.from_overrides(overrides, config)
        if self._usual_of is not config:
            self._usual, self._usual_of = GroupConfig.from_overrides({}, config), config
        return self._usual

    # --- writing ---

    def write(self, content: Sequence[KeyAndValue], answer: Answer, **batch: Any) -> None:
        """Append and apply records; `answer` hears once that they, and all before them, are committed, or are not known
        to be. Raises KafkaError, with a code for members, when nothing was written.
        """
        self._answers.write(content, answer, compression=self.config.offsets_topic_compression_codec, **batch)

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
            if decoded is None:
                return
            kind, content = decoded
            if isinstance(kind, OffsetCommitKey):
                self._replay_offset(kind, content, batch)
            elif isinstance(kind, GroupMetadataKey):
                self._replay_group(kind.group, content, is_own=batch is None)
            else:
                consumer_replay.replay(self, kind, content)
        except DecodeError as error:
            self.outbox.tell("group-record-unreadable", "warning", reason=str(error))

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
                group.end(self.outbox.now_ms)
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
        self._expiry.begin()

    def forget_topics(self, names: frozenset[str]) -> None:
        """Topics were deleted."""
        if self._expiry is not None:
            self._expiry.forget(names.__contains__)

    def closed(self) -> None:
        """Whoever waits here is sent to look for the new coordinator."""
        from tidelog.groups.classic import rebalance

        self.is_active = False
        if self._expiry is not None:
            self._expiry.stop()
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                rebalance.turn_away(group)
                group.end(self.outbox.now_ms)
            else:
                group.stop_timers()
