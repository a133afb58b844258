"""Whether nodes bear what happens to them."""

from __future__ import annotations

from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.machines import Process

FAULTS_OF_OURS = frozenset(("controller-error", "quorum-two-leaders"))
"""What nodes only tell when something is wrong with Tidelog itself."""


class NodesGoOn(Checker):
    """No node gives up, and none reports a fault of its own, while its disk works.

    Of several disks only the one with the metadata may take its node with it.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_at = self._halts = 0

    def told(self) -> None:
        world = self.history.cluster.world
        for _, node_id, one in world.told[self._looked_at :]:
            if one.kind in FAULTS_OF_OURS:
                raise self.violated(f"node {node_id} tells {one.kind}: {dict(one.fields)}")
            if one.kind == "log-directory-offline" and not self._may_fail(node_id):
                raise self.violated(f"node {node_id} gives up a directory though its disk works: {dict(one.fields)}")
        self._looked_at = len(world.told)
        for node_id, exit_code in world.halts[self._halts :]:
            if exit_code and node_id not in self.history.failing_disks:
                raise self.violated(f"node {node_id} ended itself with code {exit_code}")
        self._halts = len(world.halts)

    def _may_fail(self, node_id: int) -> bool:
        return node_id in self.history.failing_disks or node_id in self.history.failing_directories


class AnswersAreWhole(Checker):
    """What leaves a node are the records that it answered with, however long they had to wait for their way."""

    def metadata_changed(self, process: Process) -> None:
        self._look()

    def at_end(self) -> None:
        self._look()

    def _look(self) -> None:
        for node_id, target in self.history.cluster.world.torn_answers:
            if not any((node_id, *one) in self.history.rotten for one in self.history.shape.targets):
                raise self.violated(
                    f"an answer of node {node_id} to {target} has other records than those it was given"
                )
