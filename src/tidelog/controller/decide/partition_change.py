"""One partition's next state: who is in sync, who is eligible, who leads (KIP-497, KIP-704, KIP-841, KIP-966).

Whatever changes a partition comes through here, so these hold whatever the reason is:
    the leader is a live member of the ISR, or there is none
    a clean leader comes from the ISR, or, when that is empty, from the ELR; the new ISR is then that leader alone
    with both empty, the last known leader leads again when it is back: an unclean recovery, reported as such
    an unclean leader's ISR is itself alone, and it is RECOVERING until it reports otherwise
    the ELR has those who were in sync when the ISR fell below min.insync.replicas, less those who stopped uncleanly
    replicas are removed for good only when all that are to stay, old or new, are in sync
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from tidelog.controller import levels
from tidelog.controller.entities import (
    LEADER_UNCHANGED,
    NO_LEADER,
    RECOVERING,
    UNASSIGNED_DIRECTORY,
    Partition,
)
from tidelog.controller.records import PartitionChangeRecord


class Election(Enum):
    """How far a change may go to find a leader."""

    PREFERRED = "preferred"
    """The first replica if it is in sync, else as ONLINE."""
    ONLINE = "online"
    """Keep the leader if it may stay, else any that is in sync or eligible."""
    UNCLEAN = "unclean"
    """As ONLINE, and when nobody is left, any live replica: records can be lost."""


class PartitionChange:
    """A change worth writing, and how its leader was found."""

    __slots__ = ("how", "record", "unclean", "version")

    def __init__(self, record: PartitionChangeRecord, version: int, how: str, unclean: bool) -> None:
        self.record = record
        self.version = version
        self.how = how
        """For people: "preferred replica", "in-sync replica", … ; empty when the leader stays."""
        self.unclean = unclean


class PartitionChanger:
    """The wanted state of one partition. Set what is wanted, then `build`."""

    __slots__ = (
        "acceptable",
        "adding",
        "directories",
        "election",
        "elr",
        "elr_enabled",
        "forget_last_known",
        "how",
        "isr",
        "leader_recovery_state",
        "level",
        "min_isr",
        "partition",
        "partition_id",
        "removing",
        "replicas",
        "topic_id",
        "unclean_shutdown",
    )

    def __init__(
        self,
        partition: Partition,
        topic_id: bytes,
        partition_id: int,
        *,
        level: int,
        elr_enabled: bool,
        min_isr: int,
        acceptable: Callable[[int], bool],
        election: Election = Election.ONLINE,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.level = level
        self.elr_enabled = elr_enabled
        self.min_isr = min_isr
        self.acceptable = acceptable
        """Whether a broker may lead: alive, not stopping, its directory online."""
        self.election = election
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.leader_recovery_state = partition.leader_recovery_state
        self.unclean_shutdown: Collection[int] = ()
        """Replicas that came back without having stopped cleanly: what they had may be gone."""
        self.forget_last_known = False
        """The last known leader's log is gone, so it must not be taken for one that has what it had."""
        self.directories: Mapping[int, bytes] = {}
        """Directories to note, by broker; a new replica that is not here is unassigned."""
        self.elr: Sequence[int] = partition.eligible_leader_replicas
        self.how = ""

    def build(self) -> PartitionChange | None:
        """The record that brings the wanted state about, or None when it is the present one."""
        before = self.partition
        self._complete_reassignment()
        self._follow_isr_with_elr()
        leader, unclean = self._elect()
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        if leader != before.leader:
            record.leader = leader
            self._seat(leader, unclean)
        if unclean and leader != before.leader:
            self.leader_recovery_state = RECOVERING
        if not self.elr_enabled:
            self.elr = ()
        self._set_membership(record)
        if record.leader == LEADER_UNCHANGED and self._epoch_must_rise(record):
            record.leader = before.leader
        self._set_last_known_leader(record)
        self._set_assignment(record)
        if self.leader_recovery_state != before.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        if record == PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id):
            return None
        return PartitionChange(record, levels.partition_version(self.level), self.how, unclean)

    def _complete_reassignment(self) -> None:
        if not self.adding and not self.removing:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        # Not only those added: one that was there before and lags would be counted as a copy, and those that have
        # the records would go.
        if not replicas or any(replica not in isr for replica in replicas):
            return
        self.isr, self.replicas = isr, replicas
        self.adding = self.removing = ()

    def _follow_isr_with_elr(self) -> None:
        """Below min ISR, whoever was in sync has every committed record: nothing is committed from then on."""
        if not self.elr_enabled or len(self.isr) >= self.min_isr:
            self.elr = ()
            return
        candidates = {*self.elr, *self.partition.isr}
        self.elr = sorted(
            replica
            for replica in candidates
            if replica not in self.isr and replica not in self.unclean_shutdown and replica in self.replicas
        )

    def _elect(self) -> tuple[int, bool]:
        """Who leads, and whether that is unclean."""
        stays = self.partition.leader
        order = [stays, *self.replicas]
        if self.election is Election.PREFERRED:
            order.insert(0, self.replicas[0])
        for replica in order:
            if self._may_lead_cleanly(replica):
                return replica, False
        if self._last_known_leader_may_lead():
            return self.partition.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_lead_cleanly(self, replica: int) -> bool:
        if replica not in self.isr and (self.isr or replica not in self.elr):
            return False
        return replica in self.replicas and self.acceptable(replica)

    def _last_known_leader_may_lead(self) -> bool:
        """Only with nobody in sync and nobody eligible, and only when exactly one is known (KIP-966)."""
        known = self.partition.last_known_elr
        if not self.elr_enabled or self.forget_last_known or self.isr or self.elr or len(known) != 1:
            return False
        return known[0] in self.replicas and self.acceptable(known[0])

    def _seat(self, leader: int, unclean: bool) -> None:
        """Make the ISR and the ELR fit a leader that is new."""
        if leader == NO_LEADER:
            self.how = "no replica that may lead is alive"
        elif unclean:
            known = self.partition.last_known_elr == (leader,) and not self.isr and not self.elr
            self.how = (
                "unclean recovery: the last known leader, nobody being in sync or eligible"
                if known
                else "unclean election: records that only others had are lost"
            )
            self.isr, self.elr = (leader,), ()
        elif leader in self.elr:
            self.how = "eligible leader replica, nobody being in sync"
            # Where one is enough by now, it commits what the others do not have.
            others = tuple(replica for replica in self.elr if replica != leader)
            self.isr, self.elr = (leader,), others if self.min_isr > 1 else ()
        else:
            self.how = "preferred replica" if leader == self.replicas[0] else "in-sync replica"

    def _set_membership(self, record: PartitionChangeRecord) -> None:
        isr = list(self.isr)
        if not isr and not self.elr_enabled:
            # Without the ELR an empty ISR would forget who may lead again, so the last member stays in it.
            isr = [replica for replica in self.partition.isr if replica in self.replicas] or [self.replicas[0]]
        if tuple(isr) != self.partition.isr:
            record.isr = isr
        if tuple(self.elr) != self.partition.eligible_leader_replicas:
            record.eligible_leader_replicas = list(self.elr)

    def _epoch_must_rise(self, record: PartitionChangeRecord) -> bool:
        before = self.partition
        if any(replica not in self.replicas for replica in before.replicas):
            return True
        shrunk = record.isr is not None and any(replica not in record.isr for replica in before.isr)
        return shrunk and levels.bumps_leader_epoch_on_shrink(self.level)

    def _set_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Remember the leader when the ISR becomes empty; forget it when somebody leads again."""
        before = self.partition
        if not self.elr_enabled or self.forget_last_known:
            if before.last_known_elr:
                record.last_known_elr = []
            return
        leader = before.leader if record.leader == LEADER_UNCHANGED else record.leader
        if leader != NO_LEADER:
            if before.last_known_elr:
                record.last_known_elr = []
        elif record.isr == [] and before.leader != NO_LEADER:
            record.last_known_elr = [before.leader]
        elif record.isr == [] and len(before.isr) == 1:  # it stayed there from before the ELR was switched on
            record.last_known_elr = list(before.isr)

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        before = self.partition
        replicas = tuple(self.replicas)
        if levels.has_directories(self.level):
            directories = tuple(self._directory(replica) for replica in replicas)
            if directories != before.directories:
                record.directories = list(directories)
        if replicas != before.replicas:
            record.replicas = list(replicas)
        if tuple(self.removing) != before.removing_replicas:
            record.removing_replicas = list(self.removing)
        if tuple(self.adding) != before.adding_replicas:
            record.adding_replicas = list(self.adding)

    def _directory(self, replica: int) -> bytes:
        if replica in self.directories:
            return self.directories[replica]
        return self.partition.directory_of(replica) if replica in self.partition.replicas else UNASSIGNED_DIRECTORY
