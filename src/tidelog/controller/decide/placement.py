"""Where new replicas go: evenly over brokers and racks, the first replica of each partition being its preferred leader.

Within one topic every broker leads the same number of partitions and, where racks do not stand against it, holds the
same number of replicas, give or take one. Rounds of as many partitions as there are live brokers are laid out one by
one; followers differ from round to round, so that a broker's load spreads over many when it fails. Brokers with the
fewest preferred leaderships in the cluster come first, so topics of one partition are spread evenly too (Kafka draws
lots).
"""

from __future__ import annotations

from collections import Counter

from tidelog.controller.entities import Broker
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Chance


class Placer:
    """Lays out partitions over the brokers of an image; remembers what it gave, for a request with many topics."""

    def __init__(self, image: MetadataImage, chance: Chance) -> None:
        self._chance = chance
        usable = [broker for broker in image.brokers.values() if _takes_replicas(broker)]
        self._live = sorted(broker.broker_id for broker in usable if not broker.fenced)
        self._fenced = sorted(broker.broker_id for broker in usable if broker.fenced)
        self._racks = {broker.broker_id: broker.rack for broker in usable}
        self._preferred: Counter[int] = Counter()
        self._held: Counter[int] = Counter()
        for _, _, partition in image.partitions():
            self._preferred[partition.replicas[0]] += 1
            self._held.update(partition.replicas)

    def place(self, partition_count: int, replication_factor: int) -> list[list[int]]:
        """The replicas of that many new partitions of one topic, or INVALID_REPLICATION_FACTOR."""
        self._check(replication_factor)
        load: Counter[int] = Counter()
        placed: list[list[int]] = []
        while len(placed) < partition_count:
            count = min(partition_count - len(placed), len(self._live))
            rows = self._round(count, replication_factor, load)
            self._even_out(rows, load)
            for row in rows:
                self._preferred[row[0]] += 1
                self._held.update(row)
            placed.extend(rows)
        return placed

    def _check(self, replication_factor: int) -> None:
        if not self._live:
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
        known = len(self._live) + len(self._fenced)
        if replication_factor > known:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The target replication factor of {replication_factor} cannot be reached because only {known} "
                "broker(s) are registered.",
            )

    def _round(self, count: int, replication_factor: int, load: Counter[int]) -> list[list[int]]:
        """`count` partitions, each led by another live broker."""
        order = self._leaders_in_order()
        rows = [[leader] for leader in order[:count]]
        load.update(order[:count])
        candidates = order + self._fenced
        shift = self._chance.below(len(candidates))
        for number, row in enumerate(rows):
            self._add_followers(row, candidates, shift + number, replication_factor, load)
        return rows

    def _leaders_in_order(self) -> list[int]:
        """Live brokers, those with the fewest preferred leaderships first; racks alternate; lots break ties."""
        start = self._chance.below(len(self._live))
        drawn = self._live[start:] + self._live[:start]
        drawn.sort(key=lambda broker_id: self._preferred[broker_id])
        seen: Counter[str | None] = Counter()
        keyed = []
        for broker_id in drawn:
            rack = self._racks[broker_id]
            keyed.append((self._preferred[broker_id], seen[rack] if rack is not None else 0, broker_id))
            seen[rack] += 1
        keyed.sort(key=lambda key: key[:2])
        return [broker_id for _, _, broker_id in keyed]

    def _add_followers(
        self, row: list[int], candidates: list[int], shift: int, replication_factor: int, load: Counter[int]
    ) -> None:
        live = set(self._live)
        size = len(candidates)
        rank = {broker_id: (place - shift) % size for place, broker_id in enumerate(candidates)}
        racks: Counter[str | None] = Counter([self._racks[row[0]]])
        while len(row) < replication_factor:
            chosen = min(
                (broker_id for broker_id in candidates if broker_id not in row),
                key=lambda broker_id: (
                    broker_id not in live,
                    racks[self._racks[broker_id]] if self._racks[broker_id] is not None else 0,
                    load[broker_id],
                    self._held[broker_id],
                    rank[broker_id],
                ),
            )
            row.append(chosen)
            load[chosen] += 1
            racks[self._racks[chosen]] += 1

    def _even_out(self, rows: list[list[int]], load: Counter[int]) -> None:
        """Choosing partition by partition can leave a broker two replicas ahead of another: hand one over.

        Without racks that is always possible: of the partitions that the fuller one holds and the other does not, it
        leads at most one in a round.
        """
        while self._hand_over(rows, load):
            pass

    def _hand_over(self, rows: list[list[int]], load: Counter[int]) -> bool:
        by_load = sorted(self._live, key=lambda broker_id: load[broker_id])
        for emptier in by_load:
            for fuller in reversed(by_load):
                if load[fuller] - load[emptier] < 2:
                    break
                for row in rows:
                    if fuller in row[1:] and emptier not in row and self._racks_allow(row, fuller, emptier):
                        row[row.index(fuller)] = emptier
                        load[fuller] -= 1
                        load[emptier] += 1
                        return True
        return False

    def _racks_allow(self, row: list[int], leaving: int, coming: int) -> bool:
        racks = Counter(self._racks[broker_id] for broker_id in row if broker_id != leaving)
        old, new = self._racks[leaving], self._racks[coming]
        return new is None or new == old or racks[new] <= racks[old]


def _takes_replicas(broker: Broker) -> bool:
    """Not while it is stopping, nor when all its directories are cordoned (KIP-1066)."""
    if broker.in_controlled_shutdown:
        return False
    return not broker.cordoned_log_dirs or any(each not in broker.cordoned_log_dirs for each in broker.log_dirs)
