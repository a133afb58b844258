"""Changes min.insync.replicas of topics while a history plays, rather while somebody is not in sync.

That is when it matters: who is eligible rests on it (KIP-966), and what a leader knows of it is as old as its metadata.
Some changes are late ones, a plot of their own: as many followers lag as the leader can do without, what it asks the
controller takes long, and while it is about to drop them, more replicas are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidelog.controller.entities import Partition
from tidelog.replica.leadership import Leadership
from tidelog.sim.checkers.replay import MIN_ISR, min_isr_of
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.faults import Faults
from tidelog.sim.network import CONTROL, DATA
from tidelog.sim.plots import Wait, play
from tidelog.sim.shape import MinIsrShape, Shape

SLOW_MS = 300
"""How much longer the requests of a leader to the controller take when it is to be late."""


class MinIsrChanges:
    """What a shape asks for, put into the world's queue."""

    def __init__(
        self, cluster: SimulatedCluster, shape: Shape, admin: Admin, faults: Faults, note: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._changes = shape.min_isr_changes
        self._lag_ms = int(shape.settings["replica.lag.time.max.ms"])
        self._admin = admin
        self._faults = faults
        self._note = note

    def schedule(self) -> None:
        """Have each of them asked for at its time, unless faults are over by then."""
        for change in self._changes:
            self._faults.later(change.at_ms, lambda change=change: self._begin(change))  # type: ignore[misc]

    def _begin(self, change: MinIsrShape) -> None:
        acts = self._find_late(change) if change.is_late else None
        play(self._world, self._faults.later, self._wait_for_lag(change) if acts is None else acts)

    def _alter(self, change: MinIsrShape) -> None:
        self._note(f"admin: {change}")
        self._admin.alter_topic(change.topic, {MIN_ISR: str(change.value)}, lambda _: None)

    def _wait_for_lag(self, change: MinIsrShape) -> Iterator[Wait]:
        yield (lambda: self._is_somebody_lagging(change.topic)), change.patience_ms
        self._alter(change)

    def _is_somebody_lagging(self, topic: str) -> bool:
        """Whether somebody is not in sync, or its leader is about to say so."""
        for index, partition in self._partitions(topic).items():
            leadership = self._leadership(partition.leader, topic, index)
            is_asking = leadership is not None and leadership.proposed is not None
            if len(partition.isr) < len(partition.replicas) or is_asking:
                return True
        return False

    # --- late ones ---

    def _find_late(self, change: MinIsrShape) -> Iterator[Wait] | None:
        """The acts, where more are asked for than before and there is a leader that can be late."""
        controller = self._cluster.active_controller()
        for index, partition in self._partitions(change.topic).items():
            least = min_isr_of(self._cluster.newest_image(), change.topic)
            lagging = [one for one in partition.isr if one != partition.leader][max(0, least - 1) :]
            if (
                controller is not None
                and partition.leader not in (-1, controller[0])
                and lagging
                and least < min(change.value, len(partition.replicas))
            ):
                return self._be_late(change, index, partition, lagging, controller[0])
        return None

    def _be_late(
        self, change: MinIsrShape, index: int, partition: Partition, lagging: list[int], controller: int
    ) -> Iterator[Wait]:
        network, leader = self._world.network, partition.leader
        for follower in lagging:
            network.hold(leader, follower, (DATA,))
        network.slow(leader, controller, SLOW_MS, (CONTROL,))

        def is_asking() -> bool:
            leadership = self._leadership(leader, change.topic, index)
            return leadership is None or leadership.proposed is not None

        yield is_asking, self._lag_ms * 2 + 1_000
        self._alter(change)
        yield (lambda: False), 2 * SLOW_MS
        network.slow(leader, controller, 0, (CONTROL,))
        for follower in lagging:
            network.release(leader, follower, (DATA,))

    # --- looking ---

    def _partitions(self, topic: str) -> dict[int, Partition]:
        known = self._cluster.newest_image().topic(topic)
        return {} if known is None else known.partitions

    def _leadership(self, node_id: int, topic: str, index: int) -> Leadership | None:
        process = self._world.hosts[node_id].process if node_id >= 0 else None
        hosted = None if process is None else process.node.replicas.partitions.get((topic, index))
        return None if hosted is None else hosted.leadership
