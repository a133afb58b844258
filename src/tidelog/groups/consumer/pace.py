"""How soon a member is to come again.

Nobody can be called in this protocol: what happens is heard at the next heartbeat. So members are asked to come sooner
than the interval that is set where something is known to await them, and clients do as the answers tell them (KIP-848):
one that others have still to give something up for, and everybody for a while after a target was made, since a group
that has changed is likely to change again. Members that start together, or are restarted one by one, then settle within
a fraction of an interval and not after two each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import ConsumerMember, MemberState

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

SOONER = 10
"""So many times more often, where something awaits a member."""
MIN_MS = 50
"""But no member more often than this."""
MAX_GROUP_HEARTBEATS_MS = 2
"""Nor a whole group more often than so many times a millisecond: one of 1,000 members comes every 500 ms."""
RESTLESS_INTERVALS = 2
"""How long a group is taken to change again after a target was made."""


def next_heartbeat_ms(state: GroupsState, group_id: str, member: ConsumerMember) -> int:
    """The interval that is set, or less."""
    config = state.group_config(group_id)
    interval_ms = config.consumer_heartbeat_interval_ms
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return interval_ms
    since_target_ms = state.outbox.now_ms - group.assignment_timestamp_ms
    shortest_ms = max(MIN_MS, len(group.members) // MAX_GROUP_HEARTBEATS_MS)
    if group.epoch > group.assignment_epoch:
        sooner_ms = config.consumer_assignment_interval_ms - since_target_ms
    elif member.state is MemberState.UNRELEASED_PARTITIONS or since_target_ms < RESTLESS_INTERVALS * interval_ms:
        sooner_ms = interval_ms // SOONER
    else:
        sooner_ms = interval_ms
    return min(interval_ms, max(shortest_ms, sooner_ms))
