"""A marker is lost in an unclean election on real nodes: `tidelog transactions` finds what hangs, and repairs it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cluster.support import WAIT_S, cluster_of, create_topic, wait_until
from tests.transactions.exactly_once import SETTINGS
from tidelog.verify.cluster import LocalCluster

TOPIC = "orders"


def tidelog(cluster: LocalCluster, *words: str) -> Any:
    line = [sys.executable, "-m", "tidelog", "transactions", *words, "--bootstrap", cluster.bootstrap, "--json"]
    return json.loads(subprocess.run(line, capture_output=True, check=True, timeout=60).stdout)


def stable_end(cluster: LocalCluster) -> int:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "look", "isolation.level": "read_committed"}
    )
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), WAIT_S)[1])
    finally:
        consumer.close()


def end_offsets(cluster: LocalCluster) -> dict[int, int]:
    """By node, of those that run."""
    return {node: int(one["log_end_offset"]) for node, one in cluster.replicas(TOPIC).get(0, {}).items()}


def test_it_is_found_and_repaired() -> None:
    with cluster_of(3, **SETTINGS) as cluster:
        create_topic(cluster, TOPIC, 1, 2, min_insync_replicas="1", unclean_leader_election_enable="true")
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "billing"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce(TOPIC, b"paid", partition=0)
        assert producer.flush(WAIT_S) == 0
        wait_until(lambda: sorted(end_offsets(cluster).values()) == [1, 1], "both replicas have the record")
        leader = cluster.leader(TOPIC, 0)
        assert leader is not None
        (behind,) = (node for node in end_offsets(cluster) if node != leader)
        cluster.kill(behind)
        producer.commit_transaction(WAIT_S)
        wait_until(lambda: end_offsets(cluster).get(leader) == 2, "the leader has the marker")
        wait_until(
            lambda: tidelog(cluster, "describe", "billing")[0]["state"] == "CompleteCommit", "the coordinator is done"
        )
        cluster.kill(leader)
        cluster.start(behind)
        wait_until(lambda: cluster.leader(TOPIC, 0) == behind, "the replica without the marker leads")
        wait_until(lambda: stable_end(cluster) == 0, "readers of committed records are held back")
        (found,) = tidelog(cluster, "find-hanging")
        assert (found["topic"], found["partition"], found["start_offset"]) == (TOPIC, 0, 0)
        tidelog(cluster, "abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "0")
        assert stable_end(cluster) == 2
        assert tidelog(cluster, "find-hanging") == []
        cluster.start(leader)
        wait_until(lambda: sorted(end_offsets(cluster).values()) == [2, 2], "the former leader follows")
        assert tidelog(cluster, "find-hanging") == []
