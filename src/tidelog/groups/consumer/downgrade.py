"""A group in which only members of the classic protocol are left becomes a classic one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.coordination.shard import Answer
from tidelog.groups import records as classic_records
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.classic.member import Member
from tidelog.groups.consumer import embedded
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import ConsumerMember
from tidelog.groups.consumer.reconcile import merged

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

DOWNGRADING_POLICIES = ("downgrade", "bidirectional")


def can_downgrade(state: GroupsState, left: dict[str, ConsumerMember]) -> bool:
    """Whether these members make a classic group."""
    return (
        bool(left)
        and all(member.classic is not None for member in left.values())
        and state.config.group_consumer_migration_policy in DOWNGRADING_POLICIES
        and len(left) <= state.config.group_max_size
    )


def downgrade(state: GroupsState, group: ConsumerGroup, left: dict[str, ConsumerMember], answer: Answer) -> None:
    """The group's epoch is the generation, what members have the assignment; then a rebalance shares out what is free.

    Nobody leads it before that: so another coordinator knows that the rebalance is still to come. The target does
    not count: what a member has still to give up must not be taken for free, should the group change once more.
    """
    made = _as_classic(state, group, left)
    content = [*group.tombstones(), classic_records.group_metadata(made.group_id, made.to_value(made.assignments()))]
    state.write(content, answer)
    state.groups[made.group_id] = made
    rebalance.after_load(state, made)


def _as_classic(state: GroupsState, group: ConsumerGroup, left: dict[str, ConsumerMember]) -> ClassicGroup:
    made = ClassicGroup(group.group_id, state.outbox.now_ms)
    made.protocol_type = group.protocol_type
    made.generation = group.epoch
    for one in left.values():
        assert one.classic is not None
        version = embedded.assignment_version(one.classic.protocols)
        made.add(
            Member(
                one.member_id,
                one.instance_id,
                one.client_id,
                one.client_host,
                one.rebalance_timeout_ms,
                one.classic.session_timeout_ms,
                one.classic.protocols,
                embedded.write_assignment(merged(one.assigned, one.revoking), state.topics, version),
            )
        )
    made.leader_id = None
    made.protocol = made.select_protocol()
    made.state = State.STABLE
    return made
