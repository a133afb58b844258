"""A group moves from one protocol to the other and back, empty or while its members read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, ClassicMember, ConsumerMember, GroupNode
from tests.node.support import TOPIC
from tidelog.errors import ErrorCode
from tidelog.groups.classic.group import ClassicGroup
from tidelog.groups.classic.group import State as ClassicState
from tidelog.groups.consumer.group import ConsumerGroup, State
from tidelog.wire.apis import ApiKey
from tidelog.wire.codec import decode
from tidelog.wire.records.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.records.consumer_protocol_subscription import TopicPartition as Owned
from tidelog.wire.stored import encode_versioned


def node_with(**settings: str) -> GroupNode:
    intervals = {
        "group_consumer_heartbeat_interval_ms": "500",
        "group_consumer_min_heartbeat_interval_ms": "500",
        "group_consumer_assignment_interval_ms": "0",
    }
    return GroupNode(1, 4, **intervals, **settings)


@pytest.fixture
def node() -> GroupNode:
    return node_with()


class CooperativeMember(ClassicMember):
    """A consumer of the classic protocol that says what it has."""

    def __init__(self, node: GroupNode, **more: Any) -> None:
        super().__init__(node, **more)
        self.owned: list[int] = []
        self.say()

    def say(self) -> None:
        owned = [Owned(topic=TOPIC, partitions=self.owned)] if self.owned else []
        message = ConsumerProtocolSubscription(topics=[TOPIC], owned_partitions=owned, generation_id=self.generation)
        self.protocols = {"cooperative-sticky": encode_versioned(message, 2)}

    def take(self, response: Any) -> None:
        assert response.error_code == 0, ErrorCode(response.error_code)
        message, _ = decode(ConsumerProtocolAssignment, 1, bytes(response.assignment), 2)
        self.owned = sorted(number for one in message.assigned_partitions for number in one.partitions)

    def round(self) -> None:
        """A heartbeat, and what it asks for."""
        if self.member_id and self.heartbeat() is ErrorCode.NONE:
            return
        self.say()
        self.join()
        self.take(self.sync())


def part(*numbers: int) -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=TOPIC, partitions=list(numbers))])
    return encode_versioned(message, 1)


def group_of(node: GroupNode) -> ClassicGroup | ConsumerGroup:
    return node.state().groups[GROUP]


def alone(node: GroupNode) -> CooperativeMember:
    """A classic group of one that reads everything."""
    member = CooperativeMember(node)
    member.join()
    member.take(member.sync({member.member_id: part(0, 1, 2, 3)}))
    assert member.owned == [0, 1, 2, 3]
    return member


def read_by(member: CooperativeMember | ConsumerMember) -> list[int]:
    return member.owned if isinstance(member, CooperativeMember) else sorted(one for _, one in member.partitions)


def mixed_rounds(classic: CooperativeMember, modern: ConsumerMember, rounds: int = 8) -> None:
    for _ in range(rounds):
        modern.beat()
        assert not set(read_by(classic)) & set(read_by(modern)), "a partition has two owners"
        classic.round()
        assert not set(read_by(classic)) & set(read_by(modern)), "a partition has two owners"


def test_a_running_group_moves_over_and_back(node: GroupNode) -> None:
    classic = alone(node)
    classic.commit({0: 7})
    modern = ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    group = group_of(node)
    assert isinstance(group, ConsumerGroup)
    assert group.state is State.STABLE
    assert (len(read_by(classic)), len(read_by(modern))) == (2, 2)
    assert node.committed() == {0: 7}
    assert classic.commit({0: 8}) == {0: 0}
    assert modern.leave() is ErrorCode.NONE
    group = group_of(node)
    assert isinstance(group, ClassicGroup)
    assert classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    answer = classic.join()
    assert answer.leader == classic.member_id
    classic.take(classic.sync({classic.member_id: part(0, 1, 2, 3)}))
    assert group.state is ClassicState.STABLE
    assert node.committed() == {0: 8}


def test_what_the_last_modern_member_had_is_shared_out_though_the_coordinator_dies(node: GroupNode) -> None:
    """The group is a classic one again, and a rebalance is under way, when the coordinator goes."""
    classic, modern = alone(node), ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    assert modern.leave() is ErrorCode.NONE
    assert isinstance(group_of(node), ClassicGroup)
    node.restart()
    again = CooperativeMember(node)
    again.member_id, again.generation, again.owned = classic.member_id, classic.generation, classic.owned
    assert again.heartbeat() is not ErrorCode.NONE, "it goes on, and nobody reads the rest"
    again.say()
    assert again.join().leader == again.member_id
    again.take(again.sync({again.member_id: part(0, 1, 2, 3)}))
    assert again.owned == [0, 1, 2, 3]
    node.restart()
    group = group_of(node)
    assert isinstance(group, ClassicGroup)
    assert group.state is ClassicState.STABLE, "a generation that was made ends no other"


def test_a_mixed_group_survives_a_kill(node: GroupNode) -> None:
    classic, modern = alone(node), ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    before = read_by(classic), read_by(modern)
    node.restart()
    again = CooperativeMember(node)
    again.member_id, again.generation, again.owned = classic.member_id, classic.generation, classic.owned
    mixed_rounds(again, modern, 2)
    assert (read_by(again), read_by(modern)) == before


def test_the_last_classic_member_leaves(node: GroupNode) -> None:
    classic, modern = alone(node), ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    assert classic.leave().members[0].error_code == 0
    for _ in range(3):
        modern.beat()
    assert read_by(modern) == [0, 1, 2, 3]
    assert classic.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_is_silent_from_the_change_on_is_taken_out(node: GroupNode) -> None:
    """It died before anybody told it: what it had must not be its own for ever."""
    alone(node)
    modern = ConsumerMember(node, "modern")
    for _ in range(6):
        modern.beat()
        node.pass_ms(3_000)
    modern.beat()
    modern.beat()
    assert read_by(modern) == [0, 1, 2, 3]


def test_members_of_a_mixed_group_are_fenced_as_ever(node: GroupNode) -> None:
    classic, modern = alone(node), ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    assert classic.heartbeat(generation_id=99) is ErrorCode.ILLEGAL_GENERATION
    assert classic.heartbeat(member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert classic.heartbeat(member_id="modern") is ErrorCode.UNKNOWN_MEMBER_ID
    assert classic.sync(protocol_name="other").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger = ClassicMember(node)
    assert (
        stranger.ask(ApiKey.JOIN_GROUP, 9, stranger.join_request()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert classic.commit({0: 1}, generation_id_or_member_epoch=99) == {0: ErrorCode.ILLEGAL_GENERATION}


def test_an_empty_group_changes_without_asking() -> None:
    node = node_with(group_consumer_migration_policy="disabled")
    classic = alone(node)
    classic.commit({0: 7})
    modern = ConsumerMember(node, "modern")
    assert modern.code() is ErrorCode.GROUP_ID_NOT_FOUND, "it has a member, and the policy keeps it what it is"
    classic.leave()
    for _ in range(2):
        modern.beat()
    assert isinstance(group_of(node), ConsumerGroup)
    modern.leave()
    alone(node)
    assert isinstance(group_of(node), ClassicGroup)
    assert node.committed() == {0: 7}
    node.restart()
    assert isinstance(group_of(node), ClassicGroup)


def test_without_downgrades_the_group_stays(node: GroupNode) -> None:
    node = node_with(group_consumer_migration_policy="upgrade")
    classic, modern = alone(node), ConsumerMember(node, "modern")
    mixed_rounds(classic, modern)
    modern.leave()
    for _ in range(3):
        classic.round()
    assert isinstance(group_of(node), ConsumerGroup)
    assert read_by(classic) == [0, 1, 2, 3]


def test_a_static_member_changes_its_protocol(node: GroupNode) -> None:
    """It did not leave, as static members do not, and its session is not over: a rolling upgrade needs no pause."""
    classic = CooperativeMember(node, instance_id="one")
    classic.join()
    classic.take(classic.sync({classic.member_id: part(0, 1, 2, 3)}))
    modern = ConsumerMember(node, "modern", instance_id="one")
    assert modern.beat().error_code == 0
    assert isinstance(group_of(node), ConsumerGroup)
    modern.beat()
    assert read_by(modern) == [0, 1, 2, 3]
    assert classic.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_what_a_member_has_still_to_give_up_is_its_own_though_the_group_moves_back_and_over_again(
    node: GroupNode,
) -> None:
    """What the target had meant for somebody who is gone was given to the next one while the member read it."""
    classic = alone(node)
    assert ConsumerMember(node, "first").beat().error_code == 0
    assert ConsumerMember(node, "first").leave() is ErrorCode.NONE
    assert isinstance(group_of(node), ClassicGroup)
    modern = ConsumerMember(node, "second")
    modern.beat()
    mixed_rounds(classic, modern)
    assert (len(read_by(classic)), len(read_by(modern))) == (2, 2)


def test_what_a_cooperative_member_keeps_in_a_rebalance_is_its_own_when_the_group_moves_over(node: GroupNode) -> None:
    """A rebalance that begins anew forgets who was given what; members say what they have."""
    classic = alone(node)
    other = CooperativeMember(node)
    joining = other.start_join()
    classic.say()
    classic.join()
    other.joined(joining)
    CooperativeMember(node).start_join()  # calls back the generation that nobody has an assignment of yet
    assert group_of(node).state is ClassicState.PREPARING_REBALANCE
    modern = ConsumerMember(node, "modern")
    modern.beat()
    modern.beat()
    assert not set(read_by(classic)) & set(read_by(modern)), "a partition has two owners"


def test_a_member_may_like_best_what_nobody_else_has_and_nobody_can_read(node: GroupNode) -> None:
    """Its subscription is read from what all have in common; the node failed at the other when the group moved back."""
    classic = alone(node)
    modern = ConsumerMember(node, "modern")
    modern.beat()
    odd = CooperativeMember(node)
    odd.protocols = {"odd": b"", **odd.protocols}
    odd.join()
    odd.take(odd.sync())
    assert modern.leave() is ErrorCode.NONE
    assert isinstance(group_of(node), ClassicGroup)
    assert classic.heartbeat() in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
