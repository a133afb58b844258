"""`kafka.client.rack`: tasks read from the replica in their rack, and from the leader where that one is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cluster.support import WAIT_S, cluster_in_racks, create_topic, wait_in_step, wait_in_sync
from tests.spark.reading import batch_reader, rows
from tidelog.client.backoff import Deadline
from tidelog.client.connection import Connection, address_text
from tidelog.client.metadata import Broker
from tidelog.spark import fetching
from tidelog.spark.fetching import FetchSession
from tidelog.verify.cluster import LocalCluster
from tidelog.wire.messages.fetch import FetchResponse

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
    wait_in_step(cluster, "near", 1)  # followers hear of the watermark half a second later
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

    # Replicas that stand still, as one that is cut off from its leader and is still in sync for a while.
    follower = next(each for each in cluster.node_ids if each != cluster.leader("near", 0))
    leaders: set[str] = set()
    receive = Connection.receive

    def without_records(self: Connection, timeout_ms: int) -> Any:
        answer = receive(self, timeout_ms)
        if isinstance(answer, FetchResponse) and self.address not in leaders:
            for data in (each for topic in answer.responses for each in topic.partitions):
                data.records = b""
        return answer

    monkeypatch.setattr(Connection, "receive", without_records)
    monkeypatch.setattr(fetching, "_sessions", {})
    patience = {"kafkaConsumer.pollTimeoutMs": "5000", "kafka.fetch.max.wait.ms": "50"}
    reader = batch_reader(cluster, subscribe="near", **{"kafka.client.rack": f"rack-{follower}"}, **patience)  # type: ignore[arg-type]
    tasks = reader.partitions()
    leaders |= {address_text(one.leader.host, one.leader.port) for one in tasks[0].ranges}  # type: ignore[attr-defined]
    assert [row["value"] for row in rows(reader, tasks)] == [b"%d" % number for number in range(RECORDS)]
