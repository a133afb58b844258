"""What settings promise and what they do not: acks=1, min.insync.replicas, and a node that lost its disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from tests.cluster.support import WAIT_S, ask, cluster_of, create_topic, load_on, wait_in_step, wait_until
from tidelog.ledger import ACKNOWLEDGED, FAILED, Entry, compare, offset_told
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.files import stored_batches
from tidelog.verify.judge import judge_replicas, value_of
from tidelog.verify.workload import RETRY_SETTINGS, end_offsets, read_final_log
from tidelog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)


def produce(cluster: LocalCluster, topic: str, values: list[str], **settings: Any) -> list[Entry]:
    """Write values to partition 0 and return the ledger."""
    entries: list[Entry] = []

    def delivered(sequence: int, value: str) -> Any:
        def note(error: KafkaError | None, message: Any) -> None:
            outcome = ACKNOWLEDGED if error is None else FAILED
            offset = -1 if error is not None else offset_told(message.offset())
            name = "" if error is None else error.name()
            entries.append(Entry("1", sequence, value, topic, 0, offset, outcome, name, 0))

        return note

    chosen = {"bootstrap.servers": cluster.bootstrap, **RETRY_SETTINGS, "linger.ms": 0} | {
        name.replace("_", "."): setting for name, setting in settings.items()
    }
    producer = Producer(chosen)
    for sequence, value in enumerate(values):
        producer.produce(topic, value=value, partition=0, on_delivery=delivered(sequence, value))
    assert producer.flush(WAIT_S) == 0
    return entries


def codes(cluster: LocalCluster, topic: str) -> set[str]:
    """What one record with acks=all is answered when nothing is tried again."""
    entries = produce(
        cluster,
        topic,
        ["1:0"],
        acks="all",
        message_send_max_retries=0,
        enable_idempotence=False,
        message_timeout_ms=5000,
    )
    return {entry.error for entry in entries}


def test_acks_1_loses_at_a_leaders_kill_and_the_ledger_names_it() -> None:
    with cluster_of(3) as cluster:
        create_topic(cluster, "once", 1)
        safe = produce(cluster, "once", ["1:0", "1:1"], acks="all")
        wait_in_step(cluster, "once", 1)
        leader = cluster.leader("once", 0)
        assert leader is not None
        followers = [node_id for node_id in cluster.node_ids if node_id != leader]
        for node_id in followers:
            cluster.pause(node_id)
        # The first answers fetches that the followers had sent before: it may lie in their sockets. The second cannot.
        in_the_air = produce(cluster, "once", ["1:2"], acks="1", enable_idempotence=False)
        alone = produce(cluster, "once", ["1:3"], acks="1", enable_idempotence=False)
        assert {entry.outcome for entry in (*in_the_air, *alone)} == {ACKNOWLEDGED}
        cluster.kill(leader)
        for node_id in followers:
            cluster.resume(node_id)
        wait_until(lambda: cluster.leader("once", 0) in followers, "a follower leads")
        after = produce(cluster, "once", ["1:4"], acks="all")
        cluster.start(leader)
        cluster.wait_ready(WAIT_S)
        wait_in_step(cluster, "once", 1)
        (log,) = read_final_log(cluster.bootstrap, "once", 1, WAIT_S)
        values = [value_of(number) for number in log]
        found = compare([*safe, *in_the_air, *alone, *after], values)
        assert [entry.value for entry in found.lost] == (["1:3"] if "1:2" in values else ["1:2", "1:3"])
        assert values == [one for one in ("1:0", "1:1", "1:2", "1:4") if one != "1:2" or one in values]


def test_min_insync_replicas_with_one_and_two_brokers_gone() -> None:
    with cluster_of(3, controllers=1) as cluster:
        create_topic(cluster, "careful", 1)
        wait_until(lambda: codes(cluster, "careful") == {""}, "with all of them it is accepted")
        leader = cluster.leader("careful", 0)
        assert leader is not None
        first, second = (node_id for node_id in (1, 2, 3) if node_id != leader)
        cluster.kill(first)
        wait_until(lambda: codes(cluster, "careful") == {""}, "with one gone it is accepted")
        cluster.kill(second)
        refusals = {"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}
        wait_until(lambda: bool(codes(cluster, "careful") & refusals), "with two gone it is refused")
        cluster.start(first)
        wait_until(lambda: codes(cluster, "careful") == {""}, "with one back it is accepted again")
        cluster.start(second)
        cluster.wait_ready(WAIT_S)


def test_a_node_that_lost_its_disk_never_counts_as_having_what_it_had() -> None:
    with cluster_of(3) as cluster:
        create_topic(cluster, "copied", 1)
        with load_on(cluster, "copied", 1, rate=500) as load:
            load.go_on(1_500)
            controller = cluster.controller()
            victim = next(node_id for node_id in cluster.node_ids if node_id != controller)
            old_id = directory_id(cluster, victim)
            cluster.kill(victim)
            plan = cluster.plan_of(victim)
            cluster_id = properties(cluster, next(one for one in cluster.node_ids if one != victim))["cluster.id"]
            shutil.rmtree(plan.data_directory)
            Path(plan.data_directory).mkdir()
            format_anew = ["format", "--config", plan.properties_path, "--cluster-id", cluster_id]
            subprocess.run(
                [sys.executable, "-m", "tidelog", *format_anew, "--no-initial-controllers"], check=True, timeout=30
            )
            cluster.start(victim)
            ends_when_in_sync: list[tuple[int, int]] = []

            def in_sync() -> bool:
                held = cluster.replicas("copied").get(0, {})
                leader = next((one for one in held.values() if one["role"] == "leader"), None)
                own = held.get(victim)
                if leader is None or victim not in leader["isr"] or own is None:
                    return False
                ends_when_in_sync.append((own["log_end_offset"], leader["log_start_offset"]))
                return True

            wait_until(in_sync, "the node is in sync again")
            assert ends_when_in_sync[0][0] >= 1_500, "it joined only after it had copied everything"
        wait_in_step(cluster, "copied", 1)
        assert directory_id(cluster, victim) != old_id
        voters, observers = quorum_members(cluster, controller)
        assert voters[victim] != directory_id(cluster, victim), "the vote belongs to the directory that is gone"
        assert victim in observers
        (end,) = end_offsets(cluster.bootstrap, "copied", 1, WAIT_S)
        cluster.stop_all()
        stored = {one: stored_batches(cluster.plan_of(one).data_directory, "copied", 0) for one in cluster.node_ids}
        assert judge_replicas(0, stored, end) == []


def properties(cluster: LocalCluster, node_id: int) -> dict[str, str]:
    """A node's meta.properties."""
    text = (Path(cluster.plan_of(node_id).data_directory) / "meta.properties").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def directory_id(cluster: LocalCluster, node_id: int) -> str:
    """The id of a node's directory, as text."""
    return properties(cluster, node_id)["directory.id"]


def quorum_members(cluster: LocalCluster, node_id: int | None) -> tuple[dict[int, str], set[int]]:
    """Directory ids of the voters by node id, and the ids of the observers."""
    from tidelog.wire.uuids import to_text

    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
            )
        ]
    )
    answer = ask(cluster, request, node_id).topics[0].partitions[0]
    voters = {one.replica_id: to_text(one.replica_directory_id) for one in answer.current_voters}
    return voters, {one.replica_id for one in answer.observers}
