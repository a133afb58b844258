"""The consumer protocol: one owner a partition at any moment, members that wait for each other, and fencing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, ConsumerMember, GroupNode, beat_until_settled
from tests.node.support import TOPIC
from tidelog.errors import ErrorCode
from tidelog.groups.consumer import sessions
from tidelog.groups.consumer.group import ConsumerGroup, State
from tidelog.groups.consumer.member import MemberState
from tidelog.groups.records import record
from tidelog.replica.partition import Partition
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.wire.messages.delete_groups import DeleteGroupsRequest
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(
        group_consumer_heartbeat_interval_ms="500",
        group_consumer_min_heartbeat_interval_ms="500",
        group_consumer_session_timeout_ms="10000",
        group_consumer_min_session_timeout_ms="10000",
    )


def group_of(node: GroupNode) -> ConsumerGroup:
    group = node.state().groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def counts(members: list[ConsumerMember]) -> list[int]:
    return sorted(len(member.partitions) for member in members)


def test_members_come_and_go_and_all_is_read_once(node: GroupNode) -> None:
    members = [ConsumerMember(node, "a")]
    beat_until_settled(members, 2)
    assert counts(members) == [4]
    members.append(ConsumerMember(node, "b"))
    beat_until_settled(members)
    assert counts(members) == [2, 2]
    members.append(ConsumerMember(node, "c"))
    beat_until_settled(members)
    assert counts(members) == [1, 1, 2]
    assert group_of(node).state is State.STABLE
    kept = members[0].partitions
    assert members[2].leave() is ErrorCode.NONE
    members.pop()
    beat_until_settled(members)
    assert counts(members) == [2, 2]
    assert kept <= members[0].partitions, "one that leaves does not move what others have"


def test_a_partition_is_handed_over_only_when_it_was_given_up(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    beat_until_settled([first], 2)
    second.beat()
    node.pass_ms(1_100)
    for _ in range(5):
        first.beat(takes_over=False)  # it is told, and has not let go yet
        assert second.beat().assignment is None or not second.next
        assert second.partitions == set()
        node.pass_ms(600)
    first.beat()
    beat_until_settled([first, second], 4)
    assert counts([first, second]) == [2, 2]


def test_one_that_does_not_let_go_is_fenced_after_its_rebalance_timeout(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    beat_until_settled([first], 2)
    second.beat()
    node.pass_ms(1_100)
    for _ in range(5):
        first.beat(takes_over=False, rebalance_timeout_ms=5_000)
        second.beat()
        node.pass_ms(900)
    node.pass_ms(2_000)
    assert first.code() is ErrorCode.UNKNOWN_MEMBER_ID
    beat_until_settled([second], 3)
    assert counts([second]) == [4]


def test_a_silent_member_is_taken_out(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    beat_until_settled([first, second])
    for _ in range(4):
        node.pass_ms(3_000)
        first.beat()
    beat_until_settled([first], 3)
    assert counts([first]) == [4]
    assert second.code() is ErrorCode.UNKNOWN_MEMBER_ID


def test_wrong_requests_are_told_so_and_change_nothing(node: GroupNode) -> None:
    member, guest = ConsumerMember(node, "a"), ConsumerMember(node, "guest")
    beat_until_settled([member, guest])
    guest.leave()
    beat_until_settled([member], 3)
    epoch = group_of(node).epoch
    assert epoch > 2
    for wrong, code in (
        ({"member_epoch": member.epoch + 1}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_epoch": member.epoch - 1, "topic_partitions": None}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "missing"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "topic_partitions": [], "subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "other"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": r"(a)\1"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ):
        request: dict[str, Any] = dict(wrong)
        assert member.code(**request) is code, wrong
    assert (group_of(node).epoch, set(group_of(node).members)) == (epoch, {"a"})
    assert node.commit({0: 1}, member_id="a", generation_id_or_member_epoch=epoch + 1) == {
        0: ErrorCode.STALE_MEMBER_EPOCH
    }
    old: dict[str, Any] = {"member_id": "a", "generation_id_or_member_epoch": epoch, "version": 8}
    assert node.commit({0: 1}, **old) == {0: ErrorCode.UNSUPPORTED_VERSION}
    assert node.commit({0: 1}, member_id="b", generation_id_or_member_epoch=epoch) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert node.commit({0: 1}) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert node.fetch_offsets([0], member_id="a", member_epoch=epoch + 1).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert node.committed() == {}
    assert node.commit({0: 1}, member_id="a", generation_id_or_member_epoch=member.epoch) == {0: 0}
    assert member.code() is ErrorCode.NONE


def test_a_lost_answer_does_not_fence(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    beat_until_settled([first], 2)
    beat_until_settled([first, second])
    epoch = first.epoch
    second.leave()
    node.pass_ms(1_100)
    first.ask()  # raises the epoch; the answer is lost
    assert group_of(node).members["a"].epoch > epoch
    first.beat()
    assert first.epoch > epoch


def test_a_full_group_takes_nobody_in() -> None:
    node = GroupNode(group_consumer_max_size="1")
    ConsumerMember(node, "a").beat()
    assert ConsumerMember(node, "b").code() is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_new_partitions_and_topics_are_found(node: GroupNode) -> None:
    named, by_pattern = ConsumerMember(node, "a"), ConsumerMember(node, "b", pattern="ev.*|or(der)?s")
    beat_until_settled([named, by_pattern])
    assert counts([named, by_pattern]) == [2, 2]
    node.create("orders", 2)
    node.create("unrelated", 2)
    grown = CreatePartitionsTopic(name=TOPIC, count=6, assignments=None)
    request = CreatePartitionsRequest(topics=[grown], timeout_ms=1_000)
    assert node.ask(1, ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code == 0
    node.pass_ms(1_100)
    beat_until_settled([named, by_pattern])
    assert counts([named, by_pattern]) == [4, 4]
    assert {topic for topic, _ in by_pattern.partitions} == {TOPIC, "orders"}
    assert {topic for topic, _ in named.partitions} == {TOPIC}


def test_the_range_assignor_keeps_numbers_together(node: GroupNode) -> None:
    node.create("other", 4)
    members = [ConsumerMember(node, name, topics=[TOPIC, "other"], assignor="range") for name in "ab"]
    beat_until_settled(members)
    assert members[0].partitions == {(topic, number) for topic in (TOPIC, "other") for number in (0, 1)}


def test_a_group_survives_a_kill_of_its_coordinator(node: GroupNode) -> None:
    members = [ConsumerMember(node, "a"), ConsumerMember(node, "b", pattern="ev.*")]
    beat_until_settled(members)
    before, epoch = [member.partitions for member in members], group_of(node).epoch
    node.restart()
    for member in members:
        assert member.beat().member_epoch == epoch
    assert [member.partitions for member in members] == before
    assert group_of(node).state is State.STABLE
    node.pass_ms(11_000)
    assert members[0].code() is ErrorCode.UNKNOWN_MEMBER_ID, "sessions run on the new coordinator too"


def test_a_member_is_told_to_be_removed_when_the_log_has_taken_it(node: GroupNode) -> None:
    """Seed 200075: while a log took nothing, members went away every second, and were still there."""

    def limit_batches(most_bytes: int) -> None:
        limit = AlterableConfig(name="max.message.bytes", value=str(most_bytes))
        resource = AlterConfigsResource(resource_type=2, resource_name="__consumer_offsets", configs=[limit])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        assert node.ask(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code == 0

    def removed() -> list[object]:
        return [effect.fields["member"] for _, _, effect in node.world.told if effect.kind == "group-member-removed"]

    beat_until_settled([ConsumerMember(node, "a")], 2)
    limit_batches(1)
    node.pass_ms(15_000)
    assert group_of(node).members
    assert not removed()
    limit_batches(1_000_000)
    node.pass_ms(2_000)
    assert not group_of(node).members
    assert removed() == ["a"]


def test_a_coordinator_whose_disk_failed_in_the_middle_of_a_heartbeat_tries_nothing_more(
    node: GroupNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timers that the rest of that heartbeat set were tried anew every second, for ever."""
    beat_until_settled([ConsumerMember(node, "a")], 2)
    core = node.process(1).node
    state = node.state()
    tries: list[str] = []
    remove = sessions.remove
    monkeypatch.setattr(sessions, "remove", lambda *arguments: [tries.append("member"), remove(*arguments)])

    def fail(partition: Partition, _bytes: int) -> None:
        partition.go_offline()
        core.broker.role_changed(partition)

    monkeypatch.setattr(core.replicas, "appended", fail)
    joining = ConsumerMember(node, "b")
    assert joining.code() is ErrorCode.NOT_COORDINATOR
    assert not state.is_active
    node.pass_ms(60_000)
    assert len(tries) <= 2


def test_a_member_in_a_state_that_is_not_known_here_does_not_end_the_node(node: GroupNode) -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a")
    node.state().write([record(key, ConsumerGroupCurrentMemberAssignmentValue(state=9))], lambda _code: None)
    node.restart()
    member = ConsumerMember(node, "b")
    beat_until_settled([member], 2)
    assert counts([member]) == [4]


def test_nobody_but_coordinators_writes_to_their_topics(node: GroupNode) -> None:
    """What another writes there counts with the next coordinator only."""
    answer = node.produce({0: node.batch(b"x")}, topic="__consumer_offsets")
    assert answer[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_static_member_keeps_its_place_while_it_is_away(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a", instance_id="one"), ConsumerMember(node, "b", instance_id="two")
    beat_until_settled([first, second])
    place, epoch = second.partitions, group_of(node).epoch
    returned = ConsumerMember(node, "c", instance_id="two")
    assert returned.code() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert second.leave(-2) is ErrorCode.NONE
    beat_until_settled([first], 3)
    beat_until_settled([first, returned], 3)
    assert returned.partitions == place
    assert group_of(node).epoch == epoch, "no rebalance"
    assert second.code(member_epoch=epoch) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_keeps_its_place_though_it_had_something_to_give_up_when_it_went(node: GroupNode) -> None:
    """What was taken from it is given up with that: its rebalance timeout counts no more, its session does."""
    first = ConsumerMember(node, "first", instance_id="one")
    for _ in range(2):
        first.beat(rebalance_timeout_ms=3_000)
    ConsumerMember(node, "second").beat()
    node.pass_ms(1_000)
    first.beat(rebalance_timeout_ms=3_000)
    assert group_of(node).members["first"].state is MemberState.UNREVOKED_PARTITIONS
    assert first.leave(-2) is ErrorCode.NONE
    node.pass_ms(8_000)
    assert "first" in group_of(node).members
    node.pass_ms(4_000)
    assert "first" not in group_of(node).members


def test_a_member_that_was_away_too_long_begins_again(node: GroupNode) -> None:
    member = ConsumerMember(node, "a")
    beat_until_settled([member], 2)
    again = ConsumerMember(node, "a")
    beat_until_settled([again], 2)
    assert counts([again]) == [4]


def test_groups_are_described_and_deleted(node: GroupNode) -> None:
    member = ConsumerMember(node, "a", pattern="ev.*")
    beat_until_settled([member], 2)
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP, "missing"])
    known, missing = node.ask(1, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups
    assert (known.group_state, known.assignor_name, known.group_epoch) == ("Stable", "uniform", known.assignment_epoch)
    (told,) = known.members
    assert (told.member_id, told.subscribed_topic_regex, told.member_type) == ("a", "ev.*", 1)
    assert [(one.topic_name, one.partitions) for one in told.assignment.topic_partitions] == [(TOPIC, [0, 1, 2, 3])]
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deletion = DeleteGroupsRequest(groups_names=[GROUP])
    assert node.ask(1, ApiKey.DELETE_GROUPS, 2, deletion).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert node.ask(1, ApiKey.DELETE_GROUPS, 2, deletion).results[0].error_code == 0
    node.restart()
    assert GROUP not in node.state().groups


def test_the_protocol_can_be_turned_off() -> None:
    node = GroupNode(group_coordinator_rebalance_protocols="classic")
    assert ConsumerMember(node, "a").code() is ErrorCode.UNSUPPORTED_VERSION


# --- how soon members come again ---


def test_members_come_sooner_for_a_while_after_the_group_changed(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    assert first.beat().heartbeat_interval_ms == 50, "others are likely to follow"
    node.pass_ms(1_100)
    assert first.beat().heartbeat_interval_ms == 500
    assert second.beat().heartbeat_interval_ms == 50
    assert first.beat().heartbeat_interval_ms == 50
    node.pass_ms(1_100)
    assert first.beat(takes_over=False).heartbeat_interval_ms == 500
    assert second.beat().heartbeat_interval_ms == 50, "what it is to have is still another's"
    first.beat()
    assert second.beat().heartbeat_interval_ms == 500, "it has all now"
    beat_until_settled([first, second], 2)
    assert counts([first, second]) == [2, 2]


def test_a_large_group_is_not_asked_to_come_too_often() -> None:
    node = GroupNode(
        group_consumer_heartbeat_interval_ms="500",
        group_consumer_min_heartbeat_interval_ms="500",
        group_consumer_assignment_interval_ms="0",
    )
    told_ms = [ConsumerMember(node, f"member {number}").beat().heartbeat_interval_ms for number in range(140)]
    assert told_ms[0] == 50
    assert told_ms[-1] == 70, "2,000 heartbeats a second of all, not 20 of each"


def test_members_come_when_the_target_is_made() -> None:
    """Else a member that joins just after another has nothing to read for a whole interval."""
    node = GroupNode(group_consumer_heartbeat_interval_ms="5000", group_consumer_assignment_interval_ms="300")
    members = [ConsumerMember(node, name) for name in "ab"]
    members[0].beat()
    told_ms = members[1].beat().heartbeat_interval_ms
    group = group_of(node)
    assert group.epoch > group.assignment_epoch, "a target was made a moment ago"
    assert 50 <= told_ms <= 300
    node.pass_ms(told_ms)
    assert group.epoch == group.assignment_epoch
    assert members[1].beat().heartbeat_interval_ms == 500, "now it waits for what the other has"


def test_heartbeats_that_say_nothing_new_leave_nothing_behind(node: GroupNode) -> None:
    member = ConsumerMember(node, "a", topics=None)
    beat_until_settled([member], 3)
    process = node.process(1).node
    state = node.state()
    end_offset = state._answers._shard().partition.log.log_end_offset
    quiet: dict[str, Any] = {"subscribed_topic_names": None, "topic_partitions": None, "rebalance_timeout_ms": -1}
    member.beat(**quiet)
    timers = len(process.outbox._timers)
    for _ in range(50):
        answer = member.beat(**quiet)
        assert answer.assignment is None
        assert answer.member_epoch == member.epoch
    assert state._answers._shard().partition.log.log_end_offset == end_offset
    assert len(process.outbox._timers) <= timers + 5, "one timer a member, however often it reports"
    node.pass_ms(9_000)
    member.beat(**quiet)
    node.pass_ms(9_000)
    assert member.beat(**quiet).error_code == 0, "its session runs from its last heartbeat"
    node.pass_ms(10_100)
    assert member.code(**quiet) is ErrorCode.UNKNOWN_MEMBER_ID, "it fell silent"
