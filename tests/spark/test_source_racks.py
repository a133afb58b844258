"""`kafka.client.rack`: tasks read from the replica in their rack, and from the leader where that one is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.cluster.support import WAIT_S, cluster_in_racks, create_topic, wait_in_sync
from tests.spark.reading import batch_reader, rows
from tidelog.client.backoff import Deadline
from tidelog.client.connection import Connection
from tidelog.client.metadata import Broker
from tidelog.spark import fetching
from tidelog.spark.fetching import FetchSession
from tidelog.verify.cluster import LocalCluster

SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RECORDS = 500


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with cluster_in_racks(SETTINGS) as cluster:
        yield cluster


def test_a_task_reads_from_the_replica_in_its_rack(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(cluster, "near", 1)
    wait_in_sync(cluster, "near", 1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(RECORDS):
        producer.produce("near", b"%d" % number, partition=0)
    assert producer.flush(WAIT_S) == 0
    asked: list[int] = []
    connect = FetchSession.connect

    def noting(self: FetchSession, broker: Broker, deadline: Deadline) -> Connection:
        asked.append(broker.broker_id)
        return connect(self, broker, deadline)

    monkeypatch.setattr(FetchSession, "connect", noting)
    for node_id in cluster.node_ids:
        monkeypatch.setattr(fetching, "_sessions", {})  # as in a new worker, which has not met the cluster
        asked.clear()
        near = {"kafka.client.rack": f"rack-{node_id}", "kafka.max.partition.fetch.bytes": "2000"}
        reader = batch_reader(cluster, subscribe="near", **near)  # type: ignore[arg-type]
        found = rows(reader, reader.partitions())
        assert [row["value"] for row in found] == [b"%d" % number for number in range(RECORDS)]
        assert asked[-1] == node_id, f"rack-{node_id} was served by {asked}"
