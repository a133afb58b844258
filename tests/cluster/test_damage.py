"""A byte rots on a real disk, of a leader and of a follower: found, copied again, and nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from tests.cluster.support import WAIT_S, ask, cluster_of, wait_until
from tidelog.client.admin import create_topic
from tidelog.client.client import Client
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.workload import RETRY_SETTINGS
from tidelog.wire.batch import check_crc, iterate_batches, iterate_records
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

VALUES = [b"value-%04d" % number for number in range(200)]


def folder(cluster: LocalCluster, node_id: int) -> Path:
    return Path(cluster.plan_of(node_id).data_directory) / "rotten-0"


def flip(cluster: LocalCluster, node_id: int, value: bytes) -> None:
    """One bit of a record turns, under the feet of whoever has the file open."""
    path = folder(cluster, node_id) / "00000000000000000000.log"
    position = path.read_bytes().index(value)
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def values_at(cluster: LocalCluster, node_id: int) -> list[bytes]:
    """What a node's files hold, every batch proven."""
    found = []
    for path in sorted(folder(cluster, node_id).glob("*.log")):
        for batch in iterate_batches(path.read_bytes()):
            check_crc(batch)
            found += [record.value or b"" for record in iterate_records(batch)]
    return found


def isr_of(cluster: LocalCluster) -> set[int]:
    for replica in cluster.replicas("rotten").get(0, {}).values():
        if replica["role"] == "leader":
            return set(replica["isr"])
    return set()


def test_a_rotten_leader_and_then_a_rotten_follower_are_copied_again() -> None:
    with cluster_of(3) as cluster:
        with Client(cluster.bootstrap) as client:
            create_topic(client, "rotten", assignments={0: [1, 2]}, configs={"min.insync.replicas": "1"})
        acknowledged: list[bytes] = []
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 2, **RETRY_SETTINGS}
        )

        def write(values: list[bytes]) -> None:
            for value in values:
                producer.produce(
                    "rotten",
                    value=value,
                    partition=0,
                    on_delivery=lambda error, message: acknowledged.append(message.value()) if error is None else None,
                )
                producer.poll(0)
            assert producer.flush(WAIT_S) == 0

        write(VALUES[:100])
        assert cluster.leader("rotten", 0) == 1

        # The leader's byte rots. Nobody notices until somebody copies it: node 3, which is to have a replica too.
        flip(cluster, 1, VALUES[40])
        moving = ReassignablePartition(partition_index=0, replicas=[1, 2, 3])
        topic = ReassignableTopic(name="rotten", partitions=[moving])
        ask(cluster, AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic]))
        write(VALUES[100:150])
        wait_until(lambda: isr_of(cluster) == {1, 2, 3}, "all three are in sync")
        assert cluster.leader("rotten", 0) == 2, "the leader that found rot let another lead"
        assert any("log-damaged" in line and "refused it" in line for line in cluster.log_lines(1))
        assert any("damaged-replica-discarded" in line for line in cluster.log_lines(1))

        # A follower's byte rots. It is found when that follower has come to lead, and another copies from it.
        follower = 3
        flip(cluster, follower, VALUES[20])
        moving.replicas = [follower, 1]
        ask(cluster, AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic]))
        wait_until(lambda: cluster.leader("rotten", 0) == follower and isr_of(cluster) == {1, follower}, "node 3 leads")
        moving.replicas = [follower, 1, 2]
        ask(cluster, AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic]))
        write(VALUES[150:])
        wait_until(lambda: isr_of(cluster) == {1, 2, 3}, "all three are in sync again")
        assert any("damaged-replica-discarded" in line for line in cluster.log_lines(follower))

        assert acknowledged == VALUES
        wait_until(lambda: cluster.why_not_in_step("rotten", 1) is None, "the replicas are in step")
        for node_id in cluster.node_ids:
            assert values_at(cluster, node_id) == VALUES, f"node {node_id}"
