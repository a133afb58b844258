"""The group that `tidelog consume --group` reads for: where it goes on, what it has read, and what it commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.client.client import Client, TopicPartition
    from tidelog.client.consumer import ConsumedRecord

REPORT_S = 1.0
COMMIT_S = 5.0
"""As Kafka's auto.commit.interval.ms."""


class ConsumingGroup:
    """Reports what is read next, often, and commits it, seldom. It is no member: it reads all it was told to read."""

    def __init__(self, client: Client, group: str) -> None:
        self.client = client
        self.group = group
        self.positions: dict[TopicPartition, int] = {}
        """What is read next of each partition: only what was printed counts as read."""
        self._committed: dict[TopicPartition, int] = {}
        self._reported_at = self._committed_at = time.monotonic()

    def begin(self, starts: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where to read from: what the group has committed or, where it has not, as told."""
        from tidelog.client.groups import committed_offsets

        known = committed_offsets(self.client, self.group)
        self._committed = {where: one.offset for where, one in known.items() if where in starts and one.offset >= 0}
        self.positions = {**starts, **self._committed}
        self._report()
        return dict(self.positions)

    def read(self, record: ConsumedRecord) -> None:
        """A record was printed."""
        self.positions[record.topic, record.partition] = record.offset + 1

    def tend(self) -> None:
        """Report and commit when it is time."""
        now = time.monotonic()
        if now - self._reported_at >= REPORT_S:
            self._report()
        if now - self._committed_at >= COMMIT_S:
            self._commit()

    def end(self) -> None:
        """Commit and report what was read last."""
        self._commit()
        self._report()

    def _report(self) -> None:
        from tidelog.client.groups import report_positions

        report_positions(self.client, self.group, self.positions)
        self._reported_at = time.monotonic()

    def _commit(self) -> None:
        from tidelog.client.groups import commit_offsets

        news = {where: offset for where, offset in self.positions.items() if self._committed.get(where) != offset}
        if news:
            commit_offsets(self.client, self.group, news)
            self._committed |= news
        self._committed_at = time.monotonic()
