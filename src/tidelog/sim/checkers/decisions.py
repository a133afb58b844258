"""Whether what the controller decided follows the rules, change by change (KIP-497, KIP-841, KIP-903, KIP-966)."""

from __future__ import annotations

from tidelog.controller.entities import RECOVERING, Partition, is_reserved_directory
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.checkers.replay import Change
from tidelog.sim.machines import Process
from tidelog.wire.uuids import LOST_DIRECTORY


class DecisionsFollowTheRules(Checker):
    """Every change of a partition: who leads, who is in sync, who is eligible, and how the epochs move."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0

    def metadata_changed(self, process: Process) -> None:
        changes = self.history.replay.changes
        while self._looked_to < len(changes):
            change = changes[self._looked_to]
            self._looked_to += 1
            complaint = _wrong_state(change) or (
                "" if change.before is None else self._wrong_move(change, change.before)
            )
            if complaint:
                raise self.violated(f"{change.name}: {complaint}; from {_text(change.before)} to {_text(change.after)}")

    def _wrong_move(self, change: Change, before: Partition) -> str:
        if change.is_cleared:
            return _wrong_clearing(change, before)
        return _wrong_epochs(change, before) or self._wrong_leader(change, before) or _wrong_elr(change, before)

    def _wrong_leader(self, change: Change, before: Partition) -> str:
        """A clean leader was in sync or eligible; any other is the last known one, or was asked for."""
        after = change.after
        if not change.is_unclean:
            return ""
        may_be_unclean = change.topic in self.history.asked_unclean or any(
            one.may_lose for one in self.history.shape.every_topic if one.name == change.topic
        )
        # Whoever came back with less in this very change was in sync or eligible before it, and is neither now.
        counted_on = {*before.isr, *before.eligible_leader_replicas} - {*change.registered}
        was_last_known = before.last_known_elr == (after.leader,) and not counted_on
        if not may_be_unclean and not was_last_known:
            return f"node {after.leader} leads although it was neither in sync nor eligible"
        if after.isr != (after.leader,) or after.leader_recovery_state != RECOVERING:
            return "an unclean leader must be alone in sync, and recovering"
        return ""


def _wrong_state(change: Change) -> str:
    after = change.after
    isr, elr, replicas = set(after.isr), set(after.eligible_leader_replicas), set(after.replicas)
    if after.leader >= 0 and after.leader not in isr:
        return "the leader is not in sync"
    if isr & elr or not (isr | elr) <= replicas:
        return "ISR and ELR must be apart, and parts of the replicas"
    if (
        elr
        and len(isr) >= min(change.min_isr, len(replicas))
        and len(isr) >= min(change.min_isr, len((change.before or after).replicas))
    ):
        return f"nobody is to be eligible while {change.min_isr} or more are in sync"
    if after.leader >= 0 and after.last_known_elr:
        return "a last known leader is remembered although somebody leads"
    return ""


def _wrong_epochs(change: Change, before: Partition) -> str:
    after = change.after
    if after.partition_epoch != before.partition_epoch + 1:
        return "the partition epoch did not grow by one"
    if after.leader_epoch not in (before.leader_epoch, before.leader_epoch + 1):
        return "the leader epoch jumped"
    if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        return "another leader in the same epoch"
    return ""


def _wrong_elr(change: Change, before: Partition) -> str:
    after = change.after
    isr, elr = set(after.isr), set(after.eligible_leader_replicas)
    was_isr, was_elr = set(before.isr), set(before.eligible_leader_replicas)
    if not elr - was_elr <= was_isr:
        return f"{sorted(elr - was_elr - was_isr)} became eligible without having been in sync"
    has_enough = len(isr) >= min(change.min_isr, len(after.replicas), len(before.replicas))
    # A replica that found its own log damaged is not to be counted on.
    excused = {*change.registered, *(one for one in after.replicas if after.directory_of(one) == LOST_DIRECTORY)}
    gone = was_elr - elr - isr - excused
    if gone & set(after.replicas) and not has_enough and not change.is_unclean:
        return f"{sorted(gone)} are no longer eligible, for no reason"
    # A leader that came back without the directory of its replica, and nobody knows which, is not to be remembered.
    is_gone = before.leader in change.registered and is_reserved_directory(before.directory_of(before.leader))
    is_remembered = after.last_known_elr == (before.leader,) or is_gone
    if was_isr and not isr and before.leader >= 0 and not is_remembered:
        return "nobody is in sync any more, and the last leader is not remembered"
    # Whoever falls out of an ISR that is too small keeps all that is committed, unless it came back with less.
    fallen = was_isr - isr - elr - excused
    if fallen & set(after.replicas) and not has_enough and not change.is_unclean:
        return f"{sorted(fallen)} left the ISR below min.insync.replicas and are not eligible"
    return ""


def _wrong_clearing(change: Change, before: Partition) -> str:
    """min.insync.replicas changed, and ELRs rest on it: where too few are in sync before and after, they are right."""
    if not change.is_restored and len(before.isr) < min(change.min_isr, len(before.replicas)):
        return f"{before.eligible_leader_replicas} are no longer eligible, nor {before.last_known_elr} the last known"
    return ""


def _text(partition: Partition | None) -> str:
    if partition is None:
        return "nothing"
    return (
        f"(leader {partition.leader}, epochs {partition.leader_epoch}/{partition.partition_epoch}, replicas "
        f"{partition.replicas}, in sync {partition.isr}, eligible {partition.eligible_leader_replicas}, last known "
        f"{partition.last_known_elr})"
    )


class LostBytesAreNotTrusted(Checker):
    """A broker whose machine went down since its last registration is in no ISR and no ELR when it registers again."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0
        self._boots: dict[bytes, tuple[int, list[tuple[object, int]]]] = {}
        """The boot of the machine, and the disks with what they lost, by incarnation."""
        self._registered: dict[int, bytes] = {}

    def metadata_changed(self, process: Process) -> None:
        if process.node.life.incarnation_id not in self._boots:
            disks: list[tuple[object, int]] = [(disk, disk.losses) for disk in process.host.disks]
            self._boots[process.node.life.incarnation_id] = (process.host.boots, disks)
        registrations = self.history.replay.registrations
        while self._looked_to < len(registrations):
            one = registrations[self._looked_to]
            self._looked_to += 1
            former = self._registered.get(one.broker_id)
            self._registered[one.broker_id] = one.incarnation_id
            if former is None or former == one.incarnation_id or not one.counted_on:
                continue
            if self._boots.get(former) != self._boots.get(one.incarnation_id):
                raise self.violated(
                    f"node {one.broker_id} is back, its machine was down, and {', '.join(one.counted_on)} count on it"
                )
