"""What one replica does with what it is asked: appends, bounds, bad requests, failing disks, snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from tests.quorum.machines import CLUSTER, Node, directory_id, record
from tests.quorum.world import World
from tidelog.errors import ErrorCode, KafkaError
from tidelog.quorum import TOPIC, TOPIC_ID, QuorumSettings, RoleName, SnapshotId, election_state
from tidelog.quorum.core import STATE_PATH
from tidelog.quorum.metadata_log import DIRECTORY
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages import (
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)


def alone(**settings: Any) -> tuple[World, Node]:
    """A quorum of one that serves."""
    world = World(1, [1], settings=QuorumSettings(**settings))
    world.start()
    assert world.run(1000, until=lambda: world.leader() is not None)
    return world, world.nodes[1]


def three() -> tuple[World, Node]:
    """A quorum of three and its leader."""
    world = World(1, [1, 2, 3])
    world.start()
    assert world.run(10_000, until=lambda: world.leader() is not None)
    world.run(100)
    leader = world.leader()
    assert leader is not None
    return world, leader


def ask(world: World, node: Node, api_key: int, version: int, body: Any) -> Any:
    answers = world.request(node.id, api_key, version, body)
    assert world.run(5000, until=lambda: bool(answers)), "no answer"
    return answers[0]


# --- appending ---


def test_appends_of_one_step_are_one_batch_and_one_flush() -> None:
    world, node = alone()
    offsets: list[int] = []

    def append_twice() -> None:
        assert node.quorum.next_offset == 3
        offsets.append(node.quorum.append([record("a", "1"), record("b", "1")]))
        assert node.quorum.next_offset == 5
        offsets.append(node.quorum.append([record("c", "1")]))

    node.step(append_twice)
    assert offsets == [4, 5]
    world.run(50)
    assert node.quorum.high_watermark == node.quorum.next_offset == 6
    batches = list(node.quorum._core.log.batches(3, 6))
    assert [(batch.base_offset, batch.record_count) for batch in batches] == [(3, 3)]
    assert node.listener.state == {"a": "1", "b": "1", "c": "1"}


def test_nothing_is_told_as_committed_before_it_is_flushed() -> None:
    world, node = alone()
    node.flush_delay_ms = (500, 500)
    node.step(lambda: node.quorum.append([record("a", "1")]))
    world.run(400)
    assert node.listener.state == {}
    world.run(200)
    assert node.listener.state == {"a": "1"}


def test_an_append_beyond_a_batch_is_refused_whole() -> None:
    _, node = alone()
    with pytest.raises(KafkaError) as refused:
        node.step(lambda: node.quorum.append([record("a", "x" * 30_000)] * 300))
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert node.quorum.next_offset == 3


def test_appends_that_do_not_fit_together_become_batches_of_their_own() -> None:
    world, node = alone()
    large = "x" * 30_000

    def append_both() -> None:
        node.quorum.append([record("a", large)] * 170)
        node.quorum.append([record("b", large)] * 170)

    node.step(append_both)
    world.run(50)
    assert [batch.record_count for batch in node.quorum._core.log.batches(3, 343)] == [170, 170]


def test_a_follower_refuses_an_append() -> None:
    world, leader = three()
    follower = next(node for node in world.nodes.values() if node is not leader)
    with pytest.raises(KafkaError) as refused:
        follower.step(lambda: follower.quorum.append([record("a", "1")]))
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


# --- requests that make no sense change nothing ---


def vote_request(**fields: Any) -> vote.VoteRequest:
    partition = vote.VoteRequestPartitionData(replica_id=2, replica_directory_id=directory_id(2), **fields)
    topic = vote.VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=CLUSTER, voter_id=1, topics=[topic])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"replica_epoch": 0, "pre_vote": True}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"replica_epoch": 5, "last_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"replica_epoch": 5, "last_offset_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"replica_epoch": 5, "voter_directory_id": directory_id(1, 1)}, ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_a_bad_vote_request_is_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    world, node = alone()
    answer = ask(world, node, ApiKey.VOTE, 2, vote_request(**fields))
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == code
    assert not partition.vote_granted
    assert node.quorum.role is RoleName.LEADER
    assert node.quorum.epoch == 1


def test_requests_of_another_cluster_are_refused() -> None:
    world, node = alone()
    bodies = [
        (ApiKey.VOTE, 2, vote.VoteRequest(cluster_id="other")),
        (ApiKey.BEGIN_QUORUM_EPOCH, 1, begin_quorum_epoch.BeginQuorumEpochRequest(cluster_id="other")),
        (ApiKey.END_QUORUM_EPOCH, 1, end_quorum_epoch.EndQuorumEpochRequest(cluster_id="other")),
        (ApiKey.FETCH, 17, fetch.FetchRequest(cluster_id="other")),
        (ApiKey.FETCH_SNAPSHOT, 1, fetch_snapshot.FetchSnapshotRequest(cluster_id="other")),
    ]
    for api_key, version, body in bodies:
        assert ask(world, node, api_key, version, body).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_requests_about_another_partition_are_refused() -> None:
    world, node = alone()
    bodies = [
        (ApiKey.VOTE, 2, vote.VoteRequest(topics=[vote.VoteRequestTopicData(topic_name="t")])),
        (ApiKey.BEGIN_QUORUM_EPOCH, 1, begin_quorum_epoch.BeginQuorumEpochRequest()),
        (ApiKey.END_QUORUM_EPOCH, 1, end_quorum_epoch.EndQuorumEpochRequest()),
        (ApiKey.FETCH, 17, fetch.FetchRequest(topics=[fetch.FetchTopic(topic_id=bytes(16))])),
        (ApiKey.FETCH_SNAPSHOT, 1, fetch_snapshot.FetchSnapshotRequest()),
    ]
    for api_key, version, body in bodies:
        assert ask(world, node, api_key, version, body).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"current_leader_epoch": 0, "last_fetched_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 9, "last_fetched_epoch": 0}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": 1, "last_fetched_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": 1, "last_fetched_epoch": 0, "fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", [12, 17])
def test_a_bad_fetch_is_told_who_leads(fields: dict[str, Any], code: ErrorCode, version: int) -> None:
    world, node = alone()
    partition = fetch.FetchPartition(**fields)
    body = fetch.FetchRequest(
        replica_id=7, topics=[fetch.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])]
    )
    answer = ask(world, node, ApiKey.FETCH, version, body).responses[0].partitions[0]
    assert answer.error_code == code
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)


def test_a_fetch_that_diverges_is_told_where() -> None:
    world, node = alone()
    partition = fetch.FetchPartition(current_leader_epoch=1, last_fetched_epoch=0, fetch_offset=9)
    body = fetch.FetchRequest(replica_id=7, topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])])
    answer = ask(world, node, ApiKey.FETCH, 17, body).responses[0].partitions[0]
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 0)


def test_a_held_fetch_is_answered_when_its_time_is_up() -> None:
    world, node = alone()
    partition = fetch.FetchPartition(current_leader_epoch=1, last_fetched_epoch=1, fetch_offset=3, high_watermark=3)
    topics = [fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])]
    body = fetch.FetchRequest(replica_state=fetch.ReplicaState(replica_id=7), max_wait_ms=300, topics=topics)
    answers = world.request(node.id, ApiKey.FETCH, 18, body)
    world.run(250)
    assert not answers
    world.run(100)
    assert answers[0].responses[0].partitions[0].high_watermark == 3


def test_describe_of_an_unknown_topic_names_it() -> None:
    world, node = alone()
    partitions = [describe_quorum.DescribeQuorumRequestPartitionData(partition_index=4)]
    topic = describe_quorum.DescribeQuorumRequestTopicData(topic_name="t", partitions=partitions)
    answer = ask(world, node, ApiKey.DESCRIBE_QUORUM, 2, describe_quorum.DescribeQuorumRequest(topics=[topic]))
    assert answer.topics[0].topic_name == "t"
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_voter_that_moved_is_found_at_its_new_address() -> None:
    world, leader = three()
    moved = next(node for node in world.nodes.values() if node is not leader)
    body = update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=leader.quorum.epoch,
        voter_id=moved.id,
        voter_directory_id=moved.directory_id,
        listeners=[update_raft_voter.Listener(name="CONTROLLER", host="elsewhere", port=9000 + moved.id)],
        kraft_version_feature=update_raft_voter.KRaftVersionFeature(max_supported_version=1),
    )
    assert ask(world, leader, ApiKey.UPDATE_RAFT_VOTER, 0, body).error_code == ErrorCode.NONE
    world.run(1000)
    for node in world.nodes.values():
        assert node.quorum.voters.peer(moved.id, "CONTROLLER") == (moved.id, "elsewhere", 9000 + moved.id)


def test_a_voter_that_comes_back_elsewhere_has_its_address_corrected() -> None:
    world, leader = three()
    moved = next(node for node in world.nodes.values() if node is not leader)
    world.kill(moved.id)
    moved.host = "elsewhere"
    moved.start()
    world.run(3000)
    for node in world.nodes.values():
        assert node.quorum.voters.peer(moved.id, "CONTROLLER") == (moved.id, "elsewhere", 9000 + moved.id)


def test_a_leader_that_comes_back_elsewhere_says_so_in_its_first_batch() -> None:
    world, node = alone()
    world.kill(1)
    node.host = "elsewhere"
    node.start()
    world.run(100)
    assert node.quorum.voters.peer(1, "CONTROLLER") == (1, "elsewhere", 9001)
    assert [entry for _, entry in node.log()][-3:] == ["leader", "version", "voters"]


# --- failing disks ---


def test_a_replica_that_cannot_store_its_vote_halts_and_never_answers() -> None:
    world = World(1, [1, 2, 3])
    world.start(1)
    world.nodes[1].disk.fail("replace", path_prefix=STATE_PATH)
    world.nodes[1].disk.fail("flush", path_prefix=STATE_PATH)
    body = vote_request(replica_epoch=5, voter_directory_id=directory_id(1))
    answers = world.request(1, ApiKey.VOTE, 2, body)
    world.run(100)
    assert answers == []
    assert world.nodes[1].halted is not None


def test_a_leader_whose_log_cannot_be_flushed_halts() -> None:
    world, node = alone()
    node.disk.fail("flush", path_prefix=DIRECTORY)
    node.step(lambda: node.quorum.append([record("a", "1")]))
    world.run(100)
    assert node.halted is not None
    assert node.listener.state == {}


def test_a_vote_is_given_once_an_epoch_also_across_a_power_loss() -> None:
    world = World(1, [1, 2, 3])
    world.start(1)
    assert granted(world, 2)
    world.kill(1, power=True)
    world.start(1)
    stored = election_state.decode(world.nodes[1].disk.read_file(STATE_PATH))
    assert stored.epoch == 5
    assert not granted(world, 3)
    assert granted(world, 2)


def granted(world: World, candidate_id: int) -> bool:
    body = vote_request(replica_epoch=5, voter_directory_id=directory_id(1))
    body.topics[0].partitions[0].replica_id = candidate_id
    body.topics[0].partitions[0].replica_directory_id = directory_id(candidate_id)
    answer = ask(world, world.nodes[1], ApiKey.VOTE, 2, body)
    return bool(answer.topics[0].partitions[0].vote_granted)


# --- snapshots and cleaning ---


def test_a_snapshot_of_what_is_not_committed_is_refused() -> None:
    _, node = alone()
    with pytest.raises(ValueError, match="not committed"):
        node.step(lambda: node.quorum.write_snapshot([], 100))


def test_a_large_snapshot_is_written_over_many_steps_beside_other_work() -> None:
    world, node = alone()
    node.step(lambda: node.quorum.append([record("a", "1")]))
    world.run(20)
    records = [record(f"k{index}", "v" * 1000) for index in range(500)]
    done: list[SnapshotId | None] = []
    node.step(lambda: node.quorum.write_snapshot(records, node.listener.next_offset, then=done.append))
    assert node.quorum.latest_snapshot == SnapshotId(0, 0)
    second: list[Any] = []
    node.step(lambda: second.append(node.quorum.write_snapshot([], node.listener.next_offset)))
    assert second == [None], "one at a time"
    node.step(lambda: node.quorum.append([record("b", "2")]))
    world.run(100)
    assert done == [SnapshotId(4, 1)]
    assert node.quorum.latest_snapshot == SnapshotId(4, 1)
    assert node.listener.state["b"] == "2"
    assert len(node.quorum._core.log.snapshot_files.read(SnapshotId(4, 1)).records) == 500


def test_old_snapshots_and_segments_go_when_there_is_too_much() -> None:
    world, node = alone(metadata_log_segment_bytes=1000, metadata_max_retention_bytes=3000)
    for index in range(40):
        node.step(lambda index=index: node.quorum.append([record("a", f"{index}" * 20)]))  # type: ignore[misc]
        world.run(20)
        if index % 10 == 9:
            records = [record(*item) for item in node.listener.state.items()]
            node.step(lambda records=records: node.quorum.write_snapshot(records, node.listener.next_offset))  # type: ignore[misc]
            world.run(50)
    names = node.disk.list(DIRECTORY)
    assert node.quorum.log_start_offset > 0
    assert "00000000000000000000.log" not in names
    assert [name for name in names if name.endswith(".deleted")] == []
    world.kill(1)
    world.start(1)
    world.run(100)
    assert node.listener.state == {"a": "39" * 20}


def test_snapshots_older_than_the_retention_go() -> None:
    world, node = alone(metadata_max_retention_ms=10_000)
    for _ in range(2):
        node.step(lambda: node.quorum.append([record("a", "1")]))
        world.run(50)
        records = [record(*item) for item in node.listener.state.items()]
        node.step(lambda records=records: node.quorum.write_snapshot(records, node.listener.next_offset))  # type: ignore[misc]
        world.run(50)
    assert len(node.quorum._core.log.snapshots) == 3
    world.run(130_000)
    assert node.quorum._core.log.snapshots == [SnapshotId(5, 1)]
    assert node.quorum.log_start_offset == 5


def test_what_a_crash_left_half_written_is_removed() -> None:
    world, node = alone()
    world.kill(1)
    part = f"{DIRECTORY}/00000000000000000009-0000000001-4.checkpoint.part"
    node.disk.replace(part, b"half")
    world.start(1)
    assert not node.disk.exists(part)


# --- stopping ---


def test_a_clean_stop_of_the_only_voter_does_not_wait() -> None:
    _, node = alone()
    done: list[str] = []
    node.step(lambda: node.quorum.resign(lambda: done.append("done")))
    assert done == ["done"]
    assert node.listener.activated_epoch is None


def test_a_follower_stops_at_once_and_stands_for_no_election() -> None:
    world, leader = three()
    follower = next(node for node in world.nodes.values() if node is not leader)
    done: list[str] = []
    follower.step(lambda: follower.quorum.resign(lambda: done.append("done")))
    assert done == ["done"]
    world.kill(leader.id)
    world.run(5000)
    assert follower.quorum.role in (RoleName.FOLLOWER, RoleName.UNATTACHED)


def test_a_leader_that_stops_waits_for_dead_voters_no_longer_than_two_election_timeouts() -> None:
    world, leader = three()
    for node in world.nodes.values():
        if node is not leader:
            world.kill(node.id)
    done: list[str] = []
    leader.step(lambda: leader.quorum.resign(lambda: done.append("done")))
    assert done == []
    world.run(2100)
    assert done == ["done"]
