"""How soon a member is to come again.

Nobody can be called in this protocol: what happens is heard at the next heartbeat. Where a member is known to wait for
something, the answer asks it to come sooner than the interval that is set, and clients do as they are told (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import ConsumerMember, MemberState

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

WAITING_SHARE = 10
"""A member that waits comes so many times more often."""
MIN_WAITING_MS = 50
"""But not more often than this, lest a large group that is being made do nothing else."""


def next_heartbeat_ms(state: GroupsState, group_id: str, member: ConsumerMember) -> int:
    """The interval that is set, or less for a member that others have still to give something up for, or while the
    group's target has still to be made.
    """
    config = state.group_config(group_id)
    interval_ms = config.consumer_heartbeat_interval_ms
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return interval_ms
    shortest_ms = min(interval_ms, MIN_WAITING_MS)
    if group.epoch > group.assignment_epoch:
        due_ms = group.assignment_timestamp_ms + config.consumer_assignment_interval_ms
        return min(interval_ms, max(shortest_ms, due_ms - state.outbox.now_ms))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return max(shortest_ms, interval_ms // WAITING_SHARE)
    return interval_ms
