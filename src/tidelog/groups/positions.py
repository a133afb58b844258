"""Where consumers say they are: what they have read up to, which is not what they have committed.

Kafka's protocol cannot say it, so it is reported through the private query and kept in memory only. Nothing here is
ever guessed from fetches or commits.
"""

from __future__ import annotations

from collections import OrderedDict

MAX_PARTITIONS = 100_000
"""Positions kept on one shard; the ones reported longest ago go first."""
MAX_AGE_MS = 60_000
"""A consumer that has not reported for this long is not known to be there any more."""


class Positions:
    """The newest report of each partition of each group."""

    def __init__(self) -> None:
        self._reports: OrderedDict[tuple[str, str, int], tuple[int, int]] = OrderedDict()

    def report(self, group_id: str, topic: str, partition: int, position: int, now_ms: int) -> None:
        """A consumer of a group will read `position` next."""
        key = (group_id, topic, partition)
        self._reports[key] = (position, now_ms)
        self._reports.move_to_end(key)
        if len(self._reports) > MAX_PARTITIONS:
            self._reports.popitem(last=False)

    def of_group(self, group_id: str, now_ms: int) -> dict[tuple[str, int], int]:
        """What the consumers of a group reported lately."""
        return {
            (topic, partition): position
            for (group, topic, partition), (position, reported_ms) in self._reports.items()
            if group == group_id and now_ms - reported_ms <= MAX_AGE_MS
        }
