"""Looks at a node after each of its steps, and calls checkers where something has changed: most steps change little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.replica.partition import Partition
from tidelog.sim.checkers.base import Checker
from tidelog.sim.machines import Process
from tidelog.sim.world import World


class _Life:
    """What a node was like when it was last looked at, in its present life."""

    __slots__ = ("metadata", "process", "replicas")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.metadata: Any = None
        self.replicas: dict[Partition, Any] = {}


class Observer:
    """Compares what checkers depend on with what it was, once for all of them."""

    def __init__(self, world: World, checkers: Sequence[Checker]) -> None:
        self._world = world
        self._lives: dict[int, _Life] = {}
        self._seen = (0, 0)
        self._on_told = _overriding(checkers, "told")
        self._on_metadata = _overriding(checkers, "metadata_changed")
        self._on_replica = _overriding(checkers, "replica_changed")
        self._on_end = _overriding(checkers, "ended")
        self._on_step = _overriding(checkers, "stepped")

    def after_step(self, process: Process) -> None:
        """A node took a step."""
        for checker in self._on_step:
            checker.stepped(process)
        life = self._lives.get(process.host.name)
        if life is None or life.process is not process:
            life = self._lives[process.host.name] = _Life(process)
        node, world = process.node, self._world
        cluster = node.cluster
        quorum = cluster.quorum
        metadata = (quorum.high_watermark, cluster.image_offset, quorum.epoch, quorum.is_leader)
        seen = (len(world.told), len(world.halts))
        if metadata != life.metadata or seen != self._seen:
            life.metadata = metadata
            for checker in self._on_metadata:
                checker.metadata_changed(process)
        if seen != self._seen:
            self._seen = seen
            for checker in self._on_told:
                checker.told()
        known = life.replicas
        for partition in node.replicas.partitions.values():
            before = known.get(partition)
            leadership = partition.leadership
            if (
                before is not None
                and before[0] == partition.high_watermark
                and before[1] == partition.leader_epoch
                and before[2] is partition.role
                and (
                    before[3] is before[4] is None
                    if leadership is None
                    else before[4] is leadership.proposed and before[3] == leadership.isr
                )
            ):
                continue
            isr, proposed = (None, None) if leadership is None else (leadership.isr, leadership.proposed)
            known[partition] = (partition.high_watermark, partition.leader_epoch, partition.role, isr, proposed)
            for checker in self._on_replica:
                checker.replica_changed(process, partition)

    def after_end(self, process: Process) -> None:
        """A node did not outlive a step: why it ended is looked at while what may excuse it is still there."""
        for checker in self._on_end:
            checker.ended(process)
        for checker in self._on_told:
            checker.told()


def _overriding(checkers: Sequence[Checker], name: str) -> list[Checker]:
    """Those that look at this kind of change at all."""
    return [one for one in checkers if getattr(type(one), name) is not getattr(Checker, name)]
