"""What must be well again once faults have stopped, and what must go on while one broker is away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.controller.entities import Partition
from tidelog.sim.checkers import History
from tidelog.sim.checkers.replay import min_isr_of

Wish = Callable[[], str]
"""Says what is missing; "" when nothing is."""


class Wishes:
    """What there is to wish for in a history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._cluster = history.cluster
        self._shape = history.shape

    def of_all(self) -> str:
        """The first thing that is not well, with everybody back."""
        return _first(
            self._who_is_away,
            self._who_does_not_vote,
            self._what_is_out_of_order,
            self._what_is_unsettled,
            self._what_is_unread,
            self._what_is_unfinished,
        )

    def without(self, absent: int, directory_id: bytes | None = None) -> str:
        """The first thing that does not go on although enough replicas are there: nobody waits for one that is dead.

        Where a directory is given, only the replicas there are away, as soon as their broker knows, and it serves the
        others itself.
        """

        def missing(partition: Partition) -> int:
            if directory_id is None:
                return absent
            lost = [
                one.directory_id for one in self._cluster.process(absent).node.replicas.directories if not one.online
            ]
            return absent if directory_id in lost and partition.directory_of(absent) == directory_id else -1

        def stuck() -> str:
            for topic, index, partition in self._cluster.newest_image().partitions():
                if not self._can_do_without(topic.name, index, partition, missing(partition)):
                    continue
                if partition.leader in (-1, missing(partition)):
                    return f"{topic.name}-{index} has leader {partition.leader}, in sync {partition.isr}"
                hosted = self._cluster.process(partition.leader).node.replicas.partitions.get((topic.name, index))
                if hosted is None or hosted.high_watermark < hosted.log.log_end_offset:
                    ends = None if hosted is None else (hosted.high_watermark, hosted.log.log_end_offset)
                    return (
                        f"{topic.name}-{index}, in sync {partition.isr}: watermark and end of its leader's log {ends}"
                    )
            return ""

        away = absent if directory_id is None else -1
        return _first(lambda: self._who_is_away(away), stuck, lambda: self._what_is_unsettled(missing))

    def _can_do_without(self, topic: str, index: int, partition: Partition, absent: int) -> bool:
        wanted = min_isr_of(self._cluster.newest_image(), topic)
        left = [replica for replica in partition.replicas if replica != absent]
        return len(left) >= max(1, min(wanted, len(partition.replicas))) and any(
            (one, topic, index) not in self._history.rotten for one in left
        )

    def _is_rotten(self, topic: str, index: int, partition: Partition) -> bool:
        """Whether no replica is whole: whoever finds that is not served, and nobody is there to copy from.

        Where records may be lost, rot may hit whoever has them alone: the others are whole, and nobody can bring them
        up to date.
        """
        counted = partition.isr if self._history.may_lose(topic) and partition.isr else partition.replicas
        return all((one, topic, index) in self._history.rotten for one in counted)

    def _is_lost(self, topic: str, index: int) -> bool:
        """The same, of a partition as it is now."""
        known = self._cluster.newest_image().topic(topic)
        return known is not None and self._is_rotten(topic, index, known.partitions[index])

    def _who_is_away(self, absent: int = -1) -> str:
        away = [one for one in self._cluster.node_ids if one != absent and not self._cluster.is_running(one)]
        return f"nodes {away} do not serve" if away else ""

    def _who_does_not_vote(self) -> str:
        silent = [
            one for one in self._cluster.controllers if not self._cluster.process(one).node.cluster.quorum.is_voter
        ]
        return f"controllers {silent} are no voters" if silent else ""

    def _what_is_out_of_order(self) -> str:
        """Every partition is led by its preferred replica, all its replicas are in sync, and no move is under way."""
        for topic, index, one in self._cluster.newest_image().partitions():
            if self._is_rotten(topic.name, index, one):
                continue
            if one.leader != one.replicas[0] or len(one.isr) < len(one.replicas) or one.is_reassigning:
                moving = (
                    f", adding {one.adding_replicas}, removing {one.removing_replicas}" if one.is_reassigning else ""
                )
                return (
                    f"{topic.name}-{index} has leader {one.leader}, replicas {one.replicas}, in sync {one.isr}, "
                    f"eligible {one.eligible_leader_replicas}{moving}"
                )
        return ""

    def _what_is_unsettled(self, missing: Callable[[Partition], int] = lambda _: -1) -> str:
        image = self._cluster.newest_image()
        for producer in self._history.producers:
            for one in producer.unsettled:
                topic = image.topic(one.key[0])
                partition = None if topic is None else topic.partitions[one.key[1]]
                if partition is None or self._can_do_without(*one.key, partition, missing(partition)):
                    waiting = len(producer.unsettled)
                    return f"{producer.name} waits for {waiting} records, first {one.value} ({one.error.name})"
        return ""

    def _what_is_unfinished(self) -> str:
        return "" if self._history.work is None else self._history.work.unfinished(self._is_lost)

    def _what_is_unread(self) -> str:
        image = self._cluster.newest_image()
        for (topic, index), consumer in zip(self._shape.consumers, self._history.consumers, strict=True):
            known = image.topic(topic)
            assert known is not None
            if self._is_rotten(topic, index, known.partitions[index]):
                continue
            leader = self._cluster.process(known.partitions[index].leader)
            hosted = leader.node.replicas.partitions.get((topic, index))
            if hosted is None or consumer.position < hosted.log.log_end_offset:
                end_offset = None if hosted is None else hosted.log.log_end_offset
                return f"{consumer.name} of {topic}-{index} has read to {consumer.position} of {end_offset}"
        return ""


def _first(*wishes: Wish) -> str:
    return next(filter(None, (wish() for wish in wishes)), "")


__all__: Sequence[str] = ("Wishes",)
