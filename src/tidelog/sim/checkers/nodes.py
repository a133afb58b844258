"""Whether nodes bear what happens to them."""

from __future__ import annotations

from tidelog.sim.checkers.base import Checker
from tidelog.sim.machines import Process

FAULTS_OF_OURS = frozenset(("controller-error", "quorum-two-leaders"))
"""What nodes only tell when something is wrong with Tidelog itself."""


class NodesGoOn(Checker):
    """No node gives up, and none reports a fault of its own, while its disk works."""

    _looked_at = 0

    def after_step(self, process: Process) -> None:
        told = self.history.cluster.world.told
        for _, node_id, one in told[self._looked_at :]:
            if one.kind in FAULTS_OF_OURS:
                raise self.violated(f"node {node_id} tells {one.kind}: {dict(one.fields)}")
        self._looked_at = len(told)
        for node_id in self.history.cluster.node_ids:
            other = self.history.cluster.world.hosts[node_id].process
            if other is not None and other.exit_code and node_id not in self.history.failing_disks:
                raise self.violated(f"node {node_id} ended itself with code {other.exit_code}")
