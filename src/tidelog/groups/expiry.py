"""Offsets nobody needs any more are deleted, and groups that have neither members nor offsets.

An offset's retention (offsets.retention.minutes) runs while its group is empty, from when it became so; in a group
that has members, only for topics none of them subscribes to, from the commit; for a consumer that assigns its
partitions itself, from the commit (KIP-211). One that a transaction is about to change stays. Offsets of a topic that
is deleted go with it: a topic of the same name begins at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidelog.coordination.shard import KeyAndValue
from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups import records
from tidelog.groups.offsets import CommittedOffset
from tidelog.outbox import Timer

if TYPE_CHECKING:
    from tidelog.groups.state import Group, GroupsState

MINUTE_MS = 60_000
MAX_RECORDS = 1_000
"""Tombstones in one batch: what is left over goes with the next."""


class Expiry:
    """Looks through a shard every offsets.retention.check.interval.ms."""

    def __init__(self, state: GroupsState) -> None:
        self._state = state
        self._timer: Timer | None = None

    def begin(self) -> None:
        """A topic may have been deleted while nobody looked after this shard, or another did, whose word was lost."""
        self._forget_what_is_gone()
        self.start()

    def start(self) -> None:
        """Look again after the interval."""
        self._timer = self._state.outbox.after(self._state.config.offsets_retention_check_interval_ms, self._due)

    def stop(self) -> None:
        """The shard is gone."""
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        self.run()
        if self._state.is_active:
            self.start()

    def forget(self, is_deleted: Callable[[str], bool]) -> None:
        """Delete the offsets of topics that are no more. What cannot be written now is left to the next look."""
        offsets = self._state.offsets
        content = [
            records.offset_tombstone(group_id, topic, partition)
            for group_id in sorted(offsets.groups())
            for topic, partition in sorted(offsets.partitions_of_group(group_id))
            if is_deleted(topic)
        ]
        try:
            for start in range(0, len(content), MAX_RECORDS):
                self._state.write(content[start : start + MAX_RECORDS], _ignore)
        except KafkaError:
            return

    def _forget_what_is_gone(self) -> None:
        # Whoever took the offset in knew the topic, and stopped before this shard was led by the present leader, so the
        # metadata here have it as well, or know that it is gone.
        self.forget(lambda topic: self._state.topics.id_of(topic) is None)

    def run(self) -> None:
        """Delete what is over. A write that is refused now is tried again with the next look."""
        self._forget_what_is_gone()
        for group in list(self._state.groups.values()):
            content, all_gone = self._expired(group)
            if group.is_unused and all_gone and not self._state.offsets.has_any_pending(group.group_id):
                content += group.tombstones()
            try:
                for start in range(0, len(content), MAX_RECORDS):
                    self._state.write(content[start : start + MAX_RECORDS], _ignore)
            except KafkaError:
                return

    def _expired(self, group: Group) -> tuple[list[KeyAndValue], bool]:
        state = self._state
        content = []
        all_gone = True
        for (topic, partition), committed in state.offsets.of_group(group.group_id):
            if (
                group.subscribes_to(topic)
                or state.offsets.has_pending(group.group_id, topic, partition)
                or not self._is_over(group, committed)
            ):
                all_gone = False
            else:
                content.append(records.offset_tombstone(group.group_id, topic, partition))
        return content, all_gone

    def _is_over(self, group: Group, committed: CommittedOffset) -> bool:
        now_ms = self._state.outbox.now_ms
        since_ms = group.offsets_expire_from(committed.commit_timestamp_ms)
        if since_ms is None:
            return False
        if committed.expire_timestamp_ms >= 0:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - since_ms >= self._state.config.offsets_retention_minutes * MINUTE_MS


def _ignore(code: ErrorCode) -> None:
    """Nobody waits for a tombstone."""
