"""A classic group becomes one of the consumer protocol when a first member joins by that (KIP-848).

An empty one just ends. One with members is taken over as it stands, where group.consumer.migration.policy allows it:
its generation is the group's epoch, what its members have is the target, and they go on in their protocol until each is
replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.groups import records as classic_records
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.consumer import embedded, records, sessions
from tidelog.groups.consumer.epochs import Plan
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import Assignment, ClassicInfo, ConsumerMember
from tidelog.groups.consumer.reconcile import merged
from tidelog.wire.messages.join_group import JoinGroupResponse
from tidelog.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

UPGRADING_POLICIES = ("upgrade", "bidirectional")


def upgrade(state: GroupsState, group: ClassicGroup) -> Plan:
    """A plan that begins with the classic group's end. Raises KafkaError where the group must stay what it is."""
    if group.state is State.EMPTY:
        plan = Plan(state, ConsumerGroup(group.group_id))
        plan.content.append(classic_records.group_tombstone(group.group_id))
        return plan
    if (
        state.config.group_consumer_migration_policy not in UPGRADING_POLICIES
        or not group.is_of_consumers
        or len(group.members) >= state.config.group_consumer_max_size
    ):
        raise _not_one(group)
    try:
        taken_over = _take_over(state, group)
    except DecodeError:
        raise _not_one(group) from None
    plan = Plan(state, taken_over)
    plan.content = [classic_records.group_tombstone(group.group_id)]
    plan.content += [records.member(group.group_id, member) for member in plan.members.values()]
    plan.content.append(records.group_epoch(group.group_id, plan.epoch, plan.metadata_hash))
    plan.content += [records.target(group.group_id, one, assignment) for one, assignment in plan.target.items()]
    plan.content.append(records.target_epoch(group.group_id, plan.assignment_epoch, 0))
    plan.content += [records.progress(group.group_id, member) for member in plan.members.values()]
    state.outbox.at_end_of_step(lambda: _take_leave(state, group))
    return plan


def _not_one(group: ClassicGroup) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")


def _take_over(state: GroupsState, group: ClassicGroup) -> ConsumerGroup:
    made = ConsumerGroup(group.group_id)
    made.epoch = made.assignment_epoch = max(group.generation, 1)
    subscriptions = {
        member.member_id: embedded.read_subscription(member.metadata(group.protocol) or member.protocols[0][1])
        for member in group.members.values()
    }
    has = _what_members_have(state, group, subscriptions)
    for member in group.members.values():
        subscription, assigned = subscriptions[member.member_id], has[member.member_id]
        made.target[member.member_id] = assigned
        made.put(
            ConsumerMember(
                member.member_id,
                member.instance_id,
                subscription.rack_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                subscription.topics,
                None,
                None,
                ClassicInfo(member.session_timeout_ms, member.protocols),
                made.epoch,
                made.epoch,
                assigned=assigned,
            )
        )
    return made


def _what_members_have(
    state: GroupsState, group: ClassicGroup, subscriptions: Mapping[str, embedded.Subscription]
) -> dict[str, Assignment]:
    """What each was given, and what it said when it joined that it has and nobody was given since: a cooperative member
    reads that until it has heard that it may not, and has joined again (KIP-429).
    """
    has: dict[str, Assignment] = {
        member.member_id: embedded.read_assignment(member.assignment, state.topics) for member in group.members.values()
    }
    taken = {(topic_id, one) for assignment in has.values() for topic_id, found in assignment.items() for one in found}
    for member_id, said in sorted(subscriptions.items(), key=lambda item: -item[1].generation):
        claimed = embedded.by_id(said.owned, state.topics)
        free = {
            topic_id: frozenset(one for one in partitions if (topic_id, one) not in taken)
            for topic_id, partitions in claimed.items()
        }
        taken |= {(topic_id, one) for topic_id, partitions in free.items() for one in partitions}
        has[member_id] = merged(has[member_id], {topic_id: found for topic_id, found in free.items() if found})
    return has


def _take_leave(state: GroupsState, group: ClassicGroup) -> None:
    """Whoever waits in the classic group asks again, and is answered by the new one, where sessions begin anew: also of
    those who are never heard of again.
    """
    made = state.groups.get(group.group_id)
    if not isinstance(made, ConsumerGroup):
        return  # the log did not take the change
    for member in list(group.members.values()):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        member.answer_join(JoinGroupResponse(error_code=code, member_id=member.member_id))
        member.answer_sync(SyncGroupResponse(error_code=code))
    if state.is_active:
        sessions.after_load(state, made)
