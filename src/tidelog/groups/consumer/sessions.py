"""Members of consumer groups that fall silent, or do not give up what was taken from them, are taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidelog.coordination.shard import Answer
from tidelog.errors import KafkaError
from tidelog.groups.consumer.epochs import Plan
from tidelog.groups.consumer.group import ConsumerGroup
from tidelog.groups.consumer.member import LEAVE_STATIC_EPOCH, ConsumerMember, MemberState

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState

RETRY_MS = 1_000
"""When the log did not take a change that time has brought."""


def keep_alive(state: GroupsState, group: ConsumerGroup, member: ConsumerMember) -> None:
    """A sign of life: the session runs from now."""
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = state.group_config(group.group_id).consumer_session_timeout_ms
    _watch(state, group, member.member_id, timeout_ms)


def _watch(state: GroupsState, group: ConsumerGroup, member_id: str, delay_ms: int) -> None:
    """One timer a member, which looks at the deadline when it fires: a heartbeat sets no new one."""
    deadline_ms = state.outbox.now_ms + delay_ms
    group.session_deadlines_ms[member_id] = deadline_ms
    timer = group.session_timers.get(member_id)
    if timer is not None and timer.at_ms <= deadline_ms and timer.callback is not None:
        return
    if timer is not None:
        timer.cancel()
    group.session_timers[member_id] = state.outbox.at(deadline_ms, partial(_session_due, state, group, member_id))


def _session_due(state: GroupsState, group: ConsumerGroup, member_id: str) -> None:
    if state.groups.get(group.group_id) is not group or member_id not in group.members:
        return
    left_ms = group.session_deadlines_ms[member_id] - state.outbox.now_ms
    if left_ms > 0:
        _watch(state, group, member_id, left_ms)
    else:
        expire(state, group, member_id, "its session ended", lambda: _watch(state, group, member_id, RETRY_MS))


def watch_revocation(state: GroupsState, group: ConsumerGroup, member: ConsumerMember) -> None:
    """A member has its rebalance timeout to give up what was taken from it; one that is away has given it up."""
    member_id, epoch = member.member_id, member.epoch
    if member.state is not MemberState.UNREVOKED_PARTITIONS or epoch == LEAVE_STATIC_EPOCH:
        timer = group.rebalance_timers.pop(member_id, None)
        if timer is not None:
            timer.cancel()
        return
    if member_id in group.rebalance_timers:
        return

    def due() -> None:
        group.rebalance_timers.pop(member_id, None)
        now = group.members.get(member_id)
        if state.groups.get(group.group_id) is not group or now is None:
            return
        if now.epoch != epoch:
            watch_revocation(state, group, now)  # it took a step meanwhile: its time runs from there
        elif now.state is MemberState.UNREVOKED_PARTITIONS:
            expire(state, group, member_id, "it kept what was taken from it", watch_again)

    def watch_again() -> None:
        group.rebalance_timers[member_id] = state.outbox.after(RETRY_MS, due)

    group.rebalance_timers[member_id] = state.outbox.after(max(member.rebalance_timeout_ms, 0), due)


def expire(state: GroupsState, group: ConsumerGroup, member_id: str, reason: str, again: Callable[[], None]) -> None:
    """Take a member out that time has caught up with; `again` where the log did not take it, and may yet."""
    try:
        remove(state, group, [member_id], lambda _code: None)
    except KafkaError:
        if state.is_active:
            again()
        return
    state.outbox.tell("group-member-removed", "debug", group=group.group_id, member=member_id, reason=reason)


def remove(state: GroupsState, group: ConsumerGroup, member_ids: Sequence[str], answer: Answer) -> None:
    """Take members out: the group's epoch is raised, and the next heartbeat of another brings a new target.

    Where only members of the classic protocol are left, the group becomes a classic one again.
    """
    from tidelog.groups.consumer.downgrade import can_downgrade, downgrade

    left = {one: member for one, member in group.members.items() if one not in member_ids}
    if can_downgrade(state, left):
        downgrade(state, group, left, answer)
        return
    plan = Plan(state, group)
    for member_id in member_ids:
        plan.remove(member_id)
    plan.look_at_topics(raise_epoch=True)
    state.write(plan.content, answer)


def assign_later(state: GroupsState, group: ConsumerGroup, at_ms: int) -> None:
    """Targets are not made more often than group.consumer.assignment.interval.ms."""
    if group.assignment_timer is not None:
        return

    def due() -> None:
        group.assignment_timer = None
        if state.groups.get(group.group_id) is not group or not group.members:
            return
        plan = Plan(state, group)
        if plan.epoch > plan.assignment_epoch:
            plan.assign()
            try:
                state.write(plan.content, lambda _code: None)
            except KafkaError:
                if state.is_active:
                    group.assignment_timer = state.outbox.after(RETRY_MS, due)

    group.assignment_timer = state.outbox.at(at_ms, due)


def after_load(state: GroupsState, group: ConsumerGroup) -> None:
    """Members have a session's time to find this coordinator."""
    for member in group.members.values():
        keep_alive(state, group, member)
        watch_revocation(state, group, member)
