"""Elections people ask for, preferred balancing, reassignments, directories and producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.world import World, directory
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages import assign_replicas_to_dirs as dirs
from tidelog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

PREFERRED, UNCLEAN = 0, 1


def elect(world: World, kind: int, partition_ids: list[int] | None = None, topic: str = "t") -> dict[int, ErrorCode]:
    wanted = None if partition_ids is None else [TopicPartitions(topic=topic, partitions=partition_ids)]
    answer = world.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=kind, topic_partitions=wanted), 2)
    if answer.error_code:
        return {-1: ErrorCode(answer.error_code)}
    return {
        each.partition_id: ErrorCode(each.error_code)
        for results in answer.replica_election_results
        for each in results.partition_result
    }


def bounced() -> World:
    """Broker 1 went and came back into the ISR of its first partition only."""
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3], [1, 2, 3], [2, 3, 1]])
    world.crash(1)
    world.start(1)
    world.alter_isr((2, 3, 1))
    return world


def test_preferred_elections() -> None:
    world = bounced()
    assert elect(world, PREFERRED, [0, 1, 2, 9]) == {
        0: ErrorCode.NONE,
        1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        2: ErrorCode.ELECTION_NOT_NEEDED,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [each.leader for each in world.topic().partitions.values()] == [1, 2, 2]
    assert world.last_told("leader-elected")["reason"] == "preferred election asked for: preferred replica"
    world.check()


def test_electing_for_everything_leaves_out_what_needs_none() -> None:
    world = bounced()
    assert elect(world, PREFERRED) == {0: ErrorCode.NONE, 1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert elect(world, 5, [0]) == {-1: ErrorCode.INVALID_REQUEST}


def test_unclean_elections_are_for_partitions_without_a_leader() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2], [2, 3]])
    world.crash(2)
    world.crash(1)
    world.start(2)
    assert world.partition().leader == -1
    assert elect(world, UNCLEAN, [0, 1]) == {0: ErrorCode.NONE, 1: ErrorCode.ELECTION_NOT_NEEDED}
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    assert world.last_told("leader-elected")["unclean"] is True


def test_an_unclean_election_with_nobody_alive() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1]])
    world.crash(1)
    assert elect(world, UNCLEAN, [0]) == {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_leaderships_go_back_by_themselves() -> None:
    world = bounced()
    for _ in range(60):
        world.pass_ms(5_000)
        world.beat_all(1, 2, 3)
    assert [each.leader for each in world.topic().partitions.values()] == [1, 2, 2]
    assert "leaders are balanced" in world.last_told("leader-elected")["reason"]


def test_balancing_can_be_turned_off() -> None:
    world = World((1, 2), auto_leader_rebalance_enable=False)
    world.create("t", replicas=[[1, 2]])
    world.crash(1)
    world.start(1)
    world.alter_isr((2, 1))
    for _ in range(80):
        world.pass_ms(5_000)
        world.beat_all(1, 2)
    assert world.partition().leader == 2


def move(world: World, replicas: list[int] | None, **more: Any) -> ErrorCode:
    partition = ReassignablePartition(partition_index=more.pop("partition_id", 0), replicas=replicas)
    topic = ReassignableTopic(name=more.pop("topic", "t"), partitions=[partition])
    request = AlterPartitionReassignmentsRequest(topics=[topic], **more)
    answer = world.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 1)
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def listed(world: World, names: list[tuple[str, list[int]]] | None = None) -> list[tuple[int, list[int], list[int]]]:
    wanted = None
    if names is not None:
        wanted = [ListPartitionReassignmentsTopics(name=name, partition_indexes=ids) for name, ids in names]
    answer = world.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(topics=wanted))
    return [
        (each.partition_index, each.adding_replicas, each.removing_replicas)
        for topic in answer.topics
        for each in topic.partitions
    ]


def test_a_reassignment_adds_waits_and_removes() -> None:
    world = World((1, 2, 3, 4))
    world.create("t", replicas=[[1, 2]])
    assert move(world, [3, 4]) is ErrorCode.NONE
    partition = world.partition()
    assert partition.replicas == (3, 4, 1, 2)
    assert (partition.adding_replicas, partition.removing_replicas, partition.leader) == ((3, 4), (1, 2), 1)
    assert partition.directories == (directory(3), directory(4), directory(1), directory(2))
    assert listed(world) == listed(world, [("t", [0])]) == [(0, [3, 4], [1, 2])]
    assert listed(world, [("t", [1]), ("nope", [0])]) == []
    assert world.alter_isr((1, 2, 3)).error_code == ErrorCode.NONE
    assert world.partition().leader_epoch == 0
    assert world.alter_isr((1, 2, 3, 4)).error_code == ErrorCode.NEW_LEADER_ELECTED
    partition = world.partition()
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((3, 4), (3, 4), 3, 1)
    assert listed(world) == []
    assert world.kinds().count("reassignment-completed") == 1
    assert world.kinds().count("reassignment-started") == 1
    world.check()


def test_nobody_goes_before_all_that_are_to_stay_are_in_sync() -> None:
    """Else a single copy was left of what two had to have: 4 was a replica before, and lagged (seed 700025)."""
    world = World((1, 2, 3, 4))
    world.create("t", replicas=[[2, 3, 4]])
    assert world.alter_isr((2, 3)).error_code == ErrorCode.NONE
    move(world, [1, 4])
    assert world.alter_isr((2, 3, 1)).error_code == ErrorCode.NONE
    partition = world.partition()
    assert (set(partition.replicas), partition.isr, partition.leader) == ({1, 2, 3, 4}, (2, 3, 1), 2)
    assert world.alter_isr((2, 3, 1, 4)).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (world.partition().replicas, set(world.partition().isr)) == ((1, 4), {1, 4})
    world.check()


def test_a_leader_that_stays_gets_a_new_epoch_when_replicas_go() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2]])
    move(world, [1, 3])
    assert world.alter_isr((1, 2, 3)).error_code == ErrorCode.NONE
    partition = world.partition()
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((1, 3), (1, 3), 1, 1)


def test_another_order_or_fewer_replicas_is_done_at_once() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    assert move(world, [3, 2, 1]) is ErrorCode.NONE
    assert (world.partition().replicas, world.partition().leader) == ((3, 2, 1), 1)
    assert move(world, [3]) is ErrorCode.NONE
    partition = world.partition()
    assert (partition.replicas, partition.isr, partition.leader, partition.is_reassigning) == ((3,), (3,), 3, False)
    world.check()


def test_cancelling_takes_the_added_out_again() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2]])
    assert move(world, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(world, [3])
    assert move(world, None) is ErrorCode.NONE
    partition = world.partition()
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (1, 2), 1)
    assert not partition.is_reassigning
    assert world.kinds()[-1] == "reassignment-cancelled"
    world.check()


def test_cancelling_must_not_lose_records() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1]])
    move(world, [2, 3])
    world.alter_isr((1, 2))
    world.crash(1)
    assert world.partition().leader == 2
    assert move(world, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    world.check()


def test_cancelling_must_not_lose_records_that_only_a_dead_added_replica_has() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1]])
    move(world, [2, 3])
    world.alter_isr((1, 2))
    world.crash(1)
    world.start(1)
    world.crash(2)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (-1, (), (2,))
    assert move(world, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    world.register(2)
    partition = world.partition()
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), (2,))
    assert move(world, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    world.beat(2)
    assert world.partition().leader == 2
    world.check()


def test_cancelling_while_nobody_leads_leaves_those_eligible_who_stay() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1]])
    move(world, [2])
    world.crash(1)
    assert move(world, None) is ErrorCode.NONE
    assert (world.partition().replicas, world.partition().eligible_leader_replicas) == ((1,), (1,))
    world.check()


def test_a_change_of_mind_goes_to_the_new_target() -> None:
    world = World((1, 2, 3, 4))
    world.create("t", replicas=[[1]])
    move(world, [2])
    move(world, [3])
    partition = world.partition()
    assert (partition.adding_replicas, partition.removing_replicas) == ((3,), (1, 2))
    world.alter_isr((1, 3))
    assert (world.partition().replicas, world.partition().isr) == ((3,), (3,))
    world.check()


@pytest.mark.parametrize(
    ("replicas", "more", "code"),
    [
        ([9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([2, 2], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([2], {"allow_replication_factor_change": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([2, 3], {"allow_replication_factor_change": False}, ErrorCode.NONE),
        ([2], {"topic": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([2], {"partition_id": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_targets_are_checked(replicas: list[int], more: dict[str, Any], code: ErrorCode) -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2]])
    assert move(world, replicas, **more) is code


def test_producer_ids_come_in_blocks_that_are_never_given_twice() -> None:
    world = World((1, 2))
    starts = []
    for broker_id in (1, 2, 1):
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=world.image.brokers[broker_id].epoch)
        answer = world.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request)
        starts.append((answer.producer_id_start, answer.producer_id_len))
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=0)
    assert world.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_with_several_directories_tells_where_its_replicas_lie() -> None:
    world = World()
    world.directories[1] = [directory(1, 1), directory(1, 2)]
    world.start(1)
    world.start(2)
    world.create("t", replicas=[[1, 2]])
    assert world.partition().directories[0] == bytes(15) + b"\x01"
    world.assign_directories(1, {0: directory(1, 2)})
    assert world.partition().directories == (directory(1, 2), directory(2))
    assert world.partition().leader_epoch == 0
    world.assign_directories(1, {0: directory(1, 7)})
    assert (world.partition().leader, world.partition().isr) == (2, (2,))
    world.check()


def test_directories_of_what_is_not_there() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1]])
    answers = []
    for topic_id, index in ((b"?" * 16, 0), (world.topic().topic_id, 5), (world.topic().topic_id, 0)):
        place = dirs.AssignReplicasToDirsRequestPartitionData(partition_index=index)
        topic = dirs.AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=[place])
        data = dirs.AssignReplicasToDirsRequestDirectoryData(id=directory(2), topics=[topic])
        request = dirs.AssignReplicasToDirsRequest(
            broker_id=2, broker_epoch=world.image.brokers[2].epoch, directories=[data]
        )
        answer = world.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)
        answers.append(ErrorCode(answer.directories[0].topics[0].partitions[0].error_code))
    assert answers == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
