"""The classic protocol: generations, who is in them, and what everybody else is told."""

from __future__ import annotations

import pytest

from tests.groups.support import GROUP, ClassicMember, GroupNode, settle
from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.state import GroupsState
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.delete_groups import DeleteGroupsRequest
from tidelog.wire.messages.describe_groups import DescribeGroupsRequest
from tidelog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.messages.list_groups import ListGroupsRequest


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def group_of(node: GroupNode, group_id: str = GROUP) -> ClassicGroup:
    group = node.state(group_id).groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


def pair(node: GroupNode) -> tuple[ClassicMember, ClassicMember]:
    """A leader and a follower in a stable generation."""
    first, second = ClassicMember(node), ClassicMember(node)
    first.join()
    asked = second.start_join()
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    second.joined(asked)
    parts = {first.member_id: b"one", second.member_id: b"two"}
    waiting = second.start_sync()
    assert bytes(first.sync(parts).assignment) == b"one"
    assert node.world.run_until(lambda: bool(waiting.answers))
    assert bytes(waiting.answer.assignment) == b"two"
    return first, second


def test_members_share_a_generation_and_each_gets_its_part(node: GroupNode) -> None:
    first, second = pair(node)
    assert first.generation == second.generation == 2
    assert group_of(node).state is State.STABLE
    assert first.heartbeat() is second.heartbeat() is ErrorCode.NONE


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins(node: GroupNode, version: int) -> None:
    member = ClassicMember(node)
    answer = member.joined(member.start_join(version=version))
    assert answer.leader == member.member_id
    assert [one.member_id for one in answer.members] == [member.member_id]
    assert answer.protocol_name == "range"
    assert bytes(member.sync({member.member_id: b"all"}, version=min(version, 5)).assignment) == b"all"
    assert member.heartbeat(version=min(version, 4)) is ErrorCode.NONE
    assert member.leave(version=min(version, 5)).error_code == 0
    assert group_of(node).state is State.EMPTY


def test_the_protocol_most_members_like_is_chosen(node: GroupNode) -> None:
    members = [ClassicMember(node, rebalance_timeout_ms=1_000) for _ in range(3)]
    members[0].protocols = {"a": b"a0", "b": b"b0", "c": b"c0"}
    members[1].protocols = {"b": b"b1", "a": b"a1"}
    members[2].protocols = {"b": b"b2", "a": b"a2"}
    members[0].join()
    asked = [member.start_join() for member in reversed(members)]
    answers = [member.joined(one) for member, one in zip(reversed(members), asked, strict=True)]
    assert {answer.protocol_name for answer in answers} == {"b"}
    assert sorted(bytes(one.metadata) for one in answers[-1].members) == [b"b0", b"b1", b"b2"]


def test_wrong_members_are_told_so_and_change_nothing(node: GroupNode) -> None:
    first, second = pair(node)
    generation = group_of(node).generation
    assert first.heartbeat(generation_id=1) is ErrorCode.ILLEGAL_GENERATION
    assert first.heartbeat(member_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat(group_id="missing") is ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat(group_id="") is ErrorCode.INVALID_GROUP_ID
    assert first.sync(generation_id=1).error_code == ErrorCode.ILLEGAL_GENERATION
    assert first.sync(member_id="nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.sync(protocol_name="other").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert first.sync(protocol_type="other").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert first.commit({0: 1}, generation_id_or_member_epoch=1) == {0: ErrorCode.ILLEGAL_GENERATION}
    assert first.commit({0: 1}, member_id="nobody") == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert node.commit({0: 1}) == {0: ErrorCode.UNKNOWN_MEMBER_ID}, "not a member, and the group is not empty"
    other = ClassicMember(node)
    for wrong, code in (
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 3_600_000}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "missing", "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "instance", "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert other.ask(ApiKey.JOIN_GROUP, 9, other.join_request(**wrong)).error_code == code, wrong
    assert group_of(node).generation == generation
    assert group_of(node).state is State.STABLE
    assert set(group_of(node).members) == {first.member_id, second.member_id}
    assert node.committed() == {}
    assert "missing" not in node.state("missing").groups
    assert first.commit({0: 1}) == {0: 0}


def test_a_commit_between_join_and_sync_is_put_off(node: GroupNode) -> None:
    member = ClassicMember(node)
    member.join()
    assert member.commit({0: 1}) == {0: ErrorCode.REBALANCE_IN_PROGRESS}
    member.sync()
    assert member.commit({0: 1}) == {0: 0}


def test_a_silent_member_is_taken_out_and_the_rest_go_on(node: GroupNode) -> None:
    first, second = pair(node)
    for _ in range(3):
        node.pass_ms(4_000)
        first.heartbeat()
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "the second was silent for its session"
    answer = first.join()
    assert [one.member_id for one in answer.members] == [first.member_id]
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_does_not_join_again_is_left_behind(node: GroupNode) -> None:
    first, second = pair(node)
    third = ClassicMember(node)
    asked = [third.start_join(), first.start_join()]
    for _ in range(10):
        node.pass_ms(3_500)
        second.heartbeat()
    third.joined(asked[0])
    assert {one.member_id for one in first.joined(asked[1]).members} == {first.member_id, third.member_id}
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_never_asks_for_its_part_is_left_behind(node: GroupNode) -> None:
    first, second = ClassicMember(node), ClassicMember(node)
    first.join()
    asked = second.start_join()
    first.join()
    second.joined(asked)
    first.sync({})
    for _ in range(10):
        node.pass_ms(3_500)
        second.heartbeat()
        first.heartbeat()
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_under_way_is_called_back_by_a_new_member(node: GroupNode) -> None:
    first, second, third = (ClassicMember(node) for _ in range(3))
    first.join()
    asked = second.start_join()
    first.join()
    second.joined(asked)
    waiting = second.start_sync()
    asked = third.start_join()
    assert node.world.run_until(lambda: bool(waiting.answers))
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.sync({}).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = [first.start_join(), second.start_join()]
    generations = {first.joined(again[0]).generation_id, second.joined(again[1]).generation_id}
    assert generations == {third.joined(asked).generation_id}


def test_a_lost_answer_can_be_asked_for_again(node: GroupNode) -> None:
    first, second = pair(node)
    assert second.join().generation_id == first.generation, "nothing new: no rebalance"
    assert bytes(second.sync().assignment) == b"two"
    assert group_of(node).state is State.STABLE
    first.start_join()  # the leader may know of new partitions
    node.pass_ms(100)
    assert group_of(node).state is State.PREPARING_REBALANCE


def test_a_new_group_waits_for_more_members() -> None:
    node = GroupNode(group_initial_rebalance_delay_ms="3000")
    first, second = ClassicMember(node), ClassicMember(node)
    asked = [first.start_join()]
    node.pass_ms(2_000)
    asked.append(second.start_join())
    node.pass_ms(3_000)
    assert not asked[0].answers, "a member came: the group waits once more"
    answer = first.joined(asked[0])
    assert second.joined(asked[1]).generation_id == answer.generation_id == 1


def test_a_full_group_takes_nobody_in() -> None:
    node = GroupNode(group_max_size="2")
    first, second = pair(node)
    third = ClassicMember(node)
    answer = third.ask(ApiKey.JOIN_GROUP, 9, third.join_request())
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.heartbeat() is second.heartbeat() is ErrorCode.NONE


def test_a_group_and_its_assignments_survive_a_kill(node: GroupNode) -> None:
    first, second = pair(node)
    first.commit({0: 3})
    generation = first.generation
    node.restart()
    fresh = [ClassicMember(node), ClassicMember(node)]
    for old, new in zip((first, second), fresh, strict=True):
        new.member_id, new.generation = old.member_id, generation
        assert new.heartbeat() is ErrorCode.NONE
    assert [bytes(member.sync().assignment) for member in fresh] == [b"one", b"two"]
    assert fresh[0].commit({0: 4}) == {0: 0}
    node.pass_ms(11_000)
    assert fresh[0].heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID, "sessions run on the new coordinator too"


def test_ids_handed_out_are_forgotten_after_a_session(node: GroupNode) -> None:
    member = ClassicMember(node)
    member.member_id = member.ask(ApiKey.JOIN_GROUP, 9, member.join_request()).member_id
    node.pass_ms(10_500)
    assert member.ask(ApiKey.JOIN_GROUP, 9, member.join_request()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_hands_over_at_once(node: GroupNode) -> None:
    first, second = pair(node)
    assert second.leave().members[0].error_code == 0
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert first.join().generation_id == 3
    answer = second.leave()
    assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- static members ---


def static_pair(node: GroupNode) -> tuple[ClassicMember, ClassicMember]:
    members = ClassicMember(node, instance_id="a"), ClassicMember(node, instance_id="b")
    first = members[0].start_join()
    members[0].joined(first)
    parts = settle(list(members))
    assert {name.encode() for name in parts} == set(parts.values())
    return members


def test_a_static_member_that_comes_back_gets_its_part_without_a_rebalance(node: GroupNode) -> None:
    first, second = static_pair(node)
    generation = first.generation
    returned = ClassicMember(node, instance_id="b")
    assert returned.join().generation_id == generation
    assert returned.member_id != second.member_id
    assert bytes(returned.sync().assignment) == second.member_id.encode(), "what it had under its old id"
    assert first.heartbeat() is ErrorCode.NONE
    assert second.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert second.commit({0: 1}) == {0: ErrorCode.FENCED_INSTANCE_ID}
    assert second.sync().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert second.leave().members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert returned.heartbeat() is ErrorCode.NONE


@pytest.mark.parametrize(("version", "skips"), [(8, False), (9, True)])
def test_a_static_leader_that_comes_back_assigns_nothing(node: GroupNode, version: int, skips: bool) -> None:
    members = static_pair(node)
    leader = group_of(node).leader_id
    old = next(member for member in members if member.member_id == leader)
    returned = ClassicMember(node, instance_id=old.instance_id)
    answer = returned.joined(returned.start_join(version=version))
    assert answer.skip_assignment == skips
    assert (answer.leader == returned.member_id) == skips
    assert bytes(returned.sync().assignment) == old.member_id.encode()


def test_a_static_member_is_missed_only_after_its_session(node: GroupNode) -> None:
    first, second = static_pair(node)
    for _ in range(2):
        node.pass_ms(4_000)
        assert first.heartbeat() is ErrorCode.NONE
    node.pass_ms(4_000)
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_are_removed_by_their_instance_id(node: GroupNode) -> None:
    first, _ = static_pair(node)
    names = [MemberIdentity(group_instance_id="b"), MemberIdentity(group_instance_id="nobody")]
    answer = first.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id=GROUP, members=names))
    assert [one.error_code for one in answer.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_survives_a_kill_of_the_coordinator(node: GroupNode) -> None:
    _, second = static_pair(node)
    node.restart()
    returned = ClassicMember(node, instance_id="b")
    assert returned.join().generation_id == second.generation
    assert bytes(returned.sync().assignment) == second.member_id.encode()


def test_a_static_member_that_leaves_no_time_to_join_is_waited_for_in_steps(
    node: GroupNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its group looked for those who had joined again and again, without a pause, for as long as its session ran."""
    other = ClassicMember(node)
    other.join()
    settle([other, ClassicMember(node, instance_id="a", rebalance_timeout_ms=0)])
    looks = 0
    complete_join = rebalance.complete_join

    def looked(state: GroupsState, group: ClassicGroup) -> None:
        nonlocal looks
        looks += 1
        assert looks < 50, "it looks all the time"
        complete_join(state, group)

    monkeypatch.setattr(rebalance, "complete_join", looked)
    other.leave()
    assert group_of(node).state is State.PREPARING_REBALANCE
    node.pass_ms(12_000)
    assert group_of(node).state is State.EMPTY
    assert looks > 1


# --- looking at groups ---


def test_groups_are_listed_by_state_and_type(node: GroupNode) -> None:
    pair(node)
    node.commit({0: 1}, group="simple")

    def listed(**more: list[str]) -> dict[str, tuple[str, str, str]]:
        answer = node.ask(1, ApiKey.LIST_GROUPS, 5, ListGroupsRequest(**more))
        return {one.group_id: (one.protocol_type, one.group_state, one.group_type) for one in answer.groups}

    assert listed() == {GROUP: ("consumer", "Stable", "classic"), "simple": ("", "Empty", "classic")}
    assert set(listed(states_filter=["empty"])) == {"simple"}
    assert set(listed(types_filter=["Consumer"])) == set()
    assert set(listed(types_filter=["Classic"], states_filter=["Stable"])) == {GROUP}


def test_groups_are_described(node: GroupNode) -> None:
    first, second = pair(node)
    request = DescribeGroupsRequest(groups=[GROUP, "missing"])
    known, missing = node.ask(1, ApiKey.DESCRIBE_GROUPS, 6, request).groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == ("Stable", "consumer", "range")
    assert {one.member_id: bytes(one.member_assignment) for one in known.members} == {
        first.member_id: b"one",
        second.member_id: b"two",
    }
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    _, missing = node.ask(1, ApiKey.DESCRIBE_GROUPS, 5, request).groups
    assert (missing.error_code, missing.group_state) == (0, "Dead")


def test_only_empty_groups_are_deleted_and_for_good(node: GroupNode) -> None:
    first, second = pair(node)
    first.commit({0: 3})
    request = DeleteGroupsRequest(groups_names=[GROUP, "missing"])

    def delete() -> dict[str, int]:
        answer = node.ask(1, ApiKey.DELETE_GROUPS, 2, request)
        return {one.group_id: one.error_code for one in answer.results}

    assert delete() == {GROUP: ErrorCode.NON_EMPTY_GROUP, "missing": ErrorCode.GROUP_ID_NOT_FOUND}
    first.leave()
    second.leave()
    assert delete()[GROUP] == ErrorCode.NONE
    node.restart()
    assert GROUP not in node.state().groups
    assert node.committed() == {}


def test_members_of_a_node_that_stops_leading_are_sent_away(node: GroupNode) -> None:
    first, second = pair(node)
    asked = first.start_join()
    node.pass_ms(50)
    assert not asked.answers, "it waits for the second"
    core = node.process(1).node
    coordinator = core.groups.coordinator
    shard = next(one for one in coordinator.shards.values() if one.state is node.state())
    coordinator.removed(shard.partition)
    assert second.heartbeat() is ErrorCode.NOT_COORDINATOR
    assert node.world.run_until(lambda: bool(asked.answers))
    assert asked.answer.error_code == ErrorCode.NOT_COORDINATOR


def test_what_is_still_set_for_a_coordinator_that_is_over_writes_nothing(node: GroupNode) -> None:
    """Seed 202220: the time to join ended after another node led the partition, and the node failed at it."""
    state = node.state()
    group = state.create_classic(GROUP)
    group.state = State.PREPARING_REBALANCE
    coordinator = node.process(1).node.groups.coordinator
    index = next(index for index, shard in coordinator.shards.items() if shard.state is state)
    coordinator.shards.pop(index).close()
    rebalance.complete_join(state, group)
    with pytest.raises(KafkaError) as refused:
        state.save(group, {}, lambda _: None)
    assert refused.value.code is ErrorCode.NOT_COORDINATOR
