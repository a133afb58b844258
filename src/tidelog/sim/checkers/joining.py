"""How the ISR changes within a leader's epoch: by what its leader proposed, for the state it knew, with whom it may."""

from __future__ import annotations

from tidelog.controller.entities import Partition as PartitionImage
from tidelog.replica.leadership import Leadership
from tidelog.replica.partition import Partition, Role
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.checkers.replay import Change
from tidelog.sim.machines import Process
from tidelog.wire.uuids import LOST_DIRECTORY


class JoinersHaveCaughtUp(Checker):
    """Whoever a leader wants in the ISR has all that is committed and everything up to the start of its epoch.

    Whoever is taken in has what is committed, in the life it lives now (KIP-903).
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0

    def replica_changed(self, process: Process, partition: Partition) -> None:
        leadership = partition.leadership
        if leadership is None or leadership.proposed is None:
            return
        wanted = max(partition.high_watermark, leadership.epoch_start_offset)
        for joiner in leadership.proposed:
            follower = leadership.followers.get(joiner)
            if joiner in leadership.isr or follower is None:
                continue
            end_offset = self._end_offset(joiner, partition, leadership, follower.broker_epoch)
            if end_offset is not None and end_offset < wanted:
                raise self.violated(
                    f"{partition}: leader {process.host.name} wants node {joiner} in the ISR, whose log ends at "
                    f"{end_offset}; the watermark is {partition.high_watermark}, and epoch {leadership.epoch} began at "
                    f"{leadership.epoch_start_offset}"
                )

    def metadata_changed(self, process: Process) -> None:
        changes = self.history.replay.changes
        while self._looked_to < len(changes):
            change = changes[self._looked_to]
            self._looked_to += 1
            if change.before is not None and is_within_epoch(change, change.before):
                self._look(change, set(change.after.isr) - set(change.before.isr))

    def _look(self, change: Change, joined: set[int]) -> None:
        image = self.history.replay.image
        topic = image.topic(change.topic)
        leader = self.history.cluster.world.hosts[change.after.leader].process
        if topic is None or leader is None or not leader.alive:
            return
        led = leader.node.replicas.partitions.get((change.topic, change.number))
        leadership = None if led is None else led.leadership
        if led is None or leadership is None or leadership.epoch != change.after.leader_epoch:
            return
        still_in_sync = topic.partitions[change.number].isr
        for joiner in sorted(joined & set(still_in_sync)):
            end_offset = self._end_offset(joiner, led, leadership, image.brokers[joiner].epoch)
            if end_offset is not None and end_offset < led.high_watermark:
                raise self.violated(
                    f"{change.name}: node {joiner} was taken into the ISR with a log that ends at {end_offset}; the "
                    f"watermark of leader {leader.host.name} is {led.high_watermark}"
                )

    def _end_offset(
        self, broker_id: int, partition: Partition, leadership: Leadership, broker_epoch: int
    ) -> int | None:
        """Where a follower's log ends; None where nobody can tell: it is away, in another life, or in another epoch."""
        process = self.history.cluster.world.hosts[broker_id].process
        if process is None or not process.alive or process.node.lifecycle.broker_epoch != broker_epoch:
            return None
        if (broker_id, partition.topic, partition.index) in self.history.rotten:
            return None
        copy = process.node.replicas.partitions.get((partition.topic, partition.index))
        if copy is None or copy.role is not Role.FOLLOWER or copy.topic_id != partition.topic_id:
            return None
        return copy.log.log_end_offset if copy.leader_epoch == leadership.epoch else None


class LeadersCountOnTheIsr(Checker):
    """A leader counts on everybody in the committed ISR of its epoch, whatever it heard of its proposals (KIP-497)."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0

    def replica_changed(self, process: Process, partition: Partition) -> None:
        leadership = partition.leadership
        topic = None if leadership is None else self.history.replay.image.topic(partition.topic)
        known = None if topic is None else topic.partitions.get(partition.index)
        if leadership is None or topic is None or known is None or topic.topic_id != partition.topic_id:
            return
        if known.partition_epoch <= leadership.partition_epoch or known.leader_epoch != leadership.epoch:
            return
        uncounted = sorted(set(known.isr) - leadership.maximal_isr)
        if uncounted:
            raise self.violated(
                f"{partition}: leader {process.host.name} counts on {sorted(leadership.maximal_isr)}, and the ISR that "
                f"is committed is {known.isr}"
            )

    def metadata_changed(self, process: Process) -> None:
        changes = self.history.replay.changes
        while self._looked_to < len(changes):
            change = changes[self._looked_to]
            self._looked_to += 1
            if change.before is None or not is_within_epoch(change, change.before):
                continue
            self.look_at_leader(change.after.leader, change.topic, change.number)


class ProposalsAreForThePresent(Checker):
    """An ISR that a leader proposed is committed only where the partition is still in the state it was made for.

    Within a leader's epoch nobody joins the ISR but by a proposal, and nobody who is active leaves it otherwise; both
    were made for the very partition epoch that the change replaced (KIP-497).
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0
        self._proposed: dict[tuple[str, int, int, int], list[set[int]]] = {}
        """By topic, partition, leader epoch and partition epoch."""

    def replica_changed(self, process: Process, partition: Partition) -> None:
        leadership = partition.leadership
        if leadership is not None and leadership.proposed is not None:
            key = (partition.topic, partition.index, leadership.epoch, leadership.partition_epoch)
            self._proposed.setdefault(key, []).append(set(leadership.proposed))

    def metadata_changed(self, process: Process) -> None:
        changes = self.history.replay.changes
        while self._looked_to < len(changes):
            change = changes[self._looked_to]
            self._looked_to += 1
            before = change.before
            if before is None or not is_within_epoch(change, before):
                continue
            joined = set(change.after.isr) - set(before.isr)
            left = {one for one in before.isr if one not in change.after.isr and _is_there(change, one)}
            key = (change.topic, change.number, before.leader_epoch, before.partition_epoch)
            if (joined or left) and not any(
                joined <= proposal and not left & proposal for proposal in self._proposed.get(key, ())
            ):
                self._complain(change, before)

    def _complain(self, change: Change, before: PartitionImage) -> None:
        leader = before.leader
        if any(node_id == leader for node_id, _ in self.history.cluster.world.halts):
            return  # it may have proposed that in the very step in which it gave up, which nobody looks at
        raise self.violated(
            f"{change.name}: the ISR went from {before.isr} to {change.after.isr} in partition epoch "
            f"{before.partition_epoch}, for which leader {leader} had not proposed that"
        )


def is_within_epoch(change: Change, before: PartitionImage) -> bool:
    """Whether a change leaves leader and leader epoch as they are."""
    after = change.after
    return before.leader == after.leader >= 0 and before.leader_epoch == after.leader_epoch and not change.is_cleared


def _is_there(change: Change, broker_id: int) -> bool:
    """Whether a member is still a replica and its broker active, so that only its leader can want it out."""
    return (
        broker_id in change.after.replicas
        and broker_id not in change.inactive
        and broker_id not in change.registered
        and broker_id not in change.offline
        and change.after.directory_of(broker_id) != LOST_DIRECTORY
    )
