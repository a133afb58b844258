"""What being eligible means (KIP-966): whoever is in the ELR has all that is committed, so that it may lead."""

from __future__ import annotations

from tidelog.controller.entities import Partition as PartitionImage
from tidelog.replica.partition import Partition, Role
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.machines import Process
from tidelog.wire.uuids import LOST_DIRECTORY


class EligibleHaveWhatIsCommitted(Checker):
    """No watermark of a leader is beyond the log of anybody in the committed ELR, alive or as it died.

    Looked at when a watermark moves and when an ELR changes. An ELR rests on min.insync.replicas: while fewer are in
    sync nothing is committed, by no leader, however late it hears of a setting.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if partition.leadership is None or self.history.may_lose(partition.topic):
            return
        topic = self.history.replay.image.topics.get(partition.topic_id)
        known = None if topic is None else topic.partitions.get(partition.index)
        if known is not None and known.eligible_leader_replicas:
            self._look(process, partition, known)

    def metadata_changed(self, process: Process) -> None:
        changes = self.history.replay.changes
        while self._looked_to < len(changes):
            change = changes[self._looked_to]
            self._looked_to += 1
            if change.after.leader < 0 or not change.after.eligible_leader_replicas:
                continue
            self.look_at_leader(change.after.leader, change.topic, change.number)

    def _look(self, leader: Process, partition: Partition, known: PartitionImage) -> None:
        assert partition.leadership is not None
        for member in known.eligible_leader_replicas:
            other = self.history.cluster.world.hosts[member].process
            registered = self.history.replay.image.brokers.get(member)
            # One that lives again, and has not said so, may have lost what it had: then it is not eligible any more.
            if other is None or registered is None or other.node.lifecycle.broker_epoch != registered.epoch:
                continue
            copy = other.node.replicas.partitions.get((partition.topic, partition.index))
            if (
                copy is None
                or copy.topic_id != partition.topic_id
                or copy.role is Role.OFFLINE
                or known.directory_of(member) == LOST_DIRECTORY
                or (member, partition.topic, partition.index) in self.history.rotten
                # One that knows a later epoch may have cut what this leader does not know to be over.
                or copy.leader_epoch > partition.leadership.epoch
            ):
                continue
            if copy.log.log_end_offset < partition.high_watermark:
                raise self.violated(
                    f"{partition}: the watermark of leader {leader.host.name} is {partition.high_watermark}, but node "
                    f"{member}, eligible, ends at {copy.log.log_end_offset}"
                )
