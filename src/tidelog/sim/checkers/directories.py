"""Whether nodes and controllers do without a log directory that failed (KIP-112, KIP-858)."""

from __future__ import annotations

from tidelog.replica.partition import Partition, Role
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.machines import Process


class FailedDirectoriesAreLeft(Checker):
    """No replica in a directory that failed is led or copied there; once that is committed, none is in sync."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._has_several = history.shape.directories > 1
        self._looked_to = 0
        self._told = 0

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if self._has_several and partition.role is not Role.OFFLINE:
            self._look_at(process, partition)

    def told(self) -> None:
        world = self.history.cluster.world
        for _, node_id, one in world.told[self._told :]:
            process = world.hosts[node_id].process
            if one.kind == "log-directory-offline" and process is not None and process.alive:
                for partition in process.node.replicas.partitions.values():
                    self._look_at(process, partition)
        self._told = len(world.told)

    def _look_at(self, process: Process, partition: Partition) -> None:
        directory = process.node.replicas.directory_of(partition)
        if not directory.online and partition.role is not Role.OFFLINE:
            raise self.violated(
                f"{partition} is {partition.role.value} on node {process.host.name}, in a directory that failed: "
                f"{directory.offline_reason}"
            )

    def metadata_changed(self, process: Process) -> None:
        replay = self.history.replay
        if not self._has_several or replay.end_offset == self._looked_to:
            return
        self._looked_to = replay.end_offset
        for topic, index, partition in replay.image.partitions():
            for member in partition.isr:
                broker = replay.image.brokers.get(member)
                if broker is not None and not broker.has_online(partition.directory_of(member)):
                    raise self.violated(
                        f"{topic.name}-{index} counts on node {member}, whose log directory failed, as the controller "
                        f"knows; in sync {partition.isr}, leader {partition.leader}"
                    )
