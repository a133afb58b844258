"""One step of a member from what it has to what it is to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tidelog.groups.consumer.member import NOTHING, Assignment, ConsumerMember, MemberState

IsOwned = Callable[[bytes, int], bool]
"""Whether some member has a partition, or has still to give it up."""


def reconcile(
    member: ConsumerMember, target_epoch: int, target: Assignment, owned: Assignment | None, is_owned: IsOwned
) -> ConsumerMember:
    """The member as it is after this heartbeat. `owned` is what it says that it has; None where it does not say.

    What is taken away must be given up before anything new is handed out, and what is handed out must be nobody's.
    """
    epoch = member.epoch
    if member.state is MemberState.STABLE and epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _has_some_of(owned, member.revoking):
            return member
        epoch += 1
    kept, taken, given, is_waiting = _compare(member.assigned, target, is_owned)
    if taken and _has_some_of(owned, taken):
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, kept, taken)
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _moved(member, target_epoch, state, merged(kept, given), NOTHING)


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment
) -> ConsumerMember:
    previous = member.epoch if epoch != member.epoch else member.previous_epoch
    return replace(member, epoch=epoch, previous_epoch=previous, state=state, assigned=assigned, revoking=revoking)


def _compare(
    assigned: Assignment, target: Assignment, is_owned: IsOwned
) -> tuple[Assignment, Assignment, Assignment, bool]:
    """What stays, what goes, what comes, and whether some of it has still to be given up by others."""
    kept: dict[bytes, frozenset[int]] = {}
    taken: dict[bytes, frozenset[int]] = {}
    given: dict[bytes, frozenset[int]] = {}
    is_waiting = False
    for topic_id in {*assigned, *target}:
        has, wants = assigned.get(topic_id, frozenset()), target.get(topic_id, frozenset())
        free = frozenset(one for one in wants - has if not is_owned(topic_id, one))
        is_waiting = is_waiting or free != wants - has
        for found, partitions in ((kept, has & wants), (taken, has - wants), (given, free)):
            if partitions:
                found[topic_id] = partitions
    return kept, taken, given, is_waiting


def _has_some_of(owned: Assignment | None, wanted: Assignment) -> bool:
    """A member that does not say what it has is taken to have it all."""
    if owned is None:
        return True
    return any(partitions & owned.get(topic_id, frozenset()) for topic_id, partitions in wanted.items())


def merged(*assignments: Mapping[bytes, frozenset[int]]) -> dict[bytes, frozenset[int]]:
    """All of them together."""
    result: dict[bytes, frozenset[int]] = {}
    for assignment in assignments:
        for topic_id, partitions in assignment.items():
            result[topic_id] = result.get(topic_id, frozenset()) | partitions
    return result


def is_part_of(some: Assignment, whole: Assignment) -> bool:
    """Whether one has nothing that the other has not."""
    return all(partitions <= whole.get(topic_id, frozenset()) for topic_id, partitions in some.items())
