"""confluent-kafka reads committed records from the replica in its rack (KIP-392): followers know what is aborted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.clients import confluent
from tests.cluster.support import WAIT_S, cluster_in_racks, create_topic, wait_in_sync
from tidelog.verify.cluster import LocalCluster

TOPIC = "orders"
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "transaction.state.log.num.partitions": "3",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cluster_in_racks(SETTINGS) as cluster:
        create_topic(cluster, TOPIC, 1)
        wait_in_sync(cluster, TOPIC, 1)
        yield cluster


def test_followers_serve_readers_of_committed_records(cluster: LocalCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "billing"})
    producer.init_transactions(WAIT_S)
    for number in range(20):
        producer.begin_transaction()
        producer.produce(TOPIC, b"%d" % number, partition=0)
        if number % 3:
            producer.commit_transaction(WAIT_S)
        else:
            assert producer.flush(WAIT_S) == 0
            producer.abort_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=0)
    assert producer.flush(WAIT_S) == 0
    expected = [number for number in range(20) if number % 3]
    for node_id in cluster.node_ids:
        sources: set[int] = set()

        def note(text: str, sources: set[int] = sources) -> None:
            partitions = json.loads(text).get("topics", {}).get(TOPIC, {}).get("partitions", {})
            if "0" in partitions:
                sources.add(partitions["0"]["broker"])

        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "reader",
                "client.rack": f"rack-{node_id}",
                "isolation.level": "read_committed",
                "statistics.interval.ms": 50,
                "fetch.wait.max.ms": 50,
                "stats_cb": note,
            }
        )
        try:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            read = [int(message.value() or b"") for message in confluent.take(consumer, len(expected))]
            assert read == expected
            assert not [one for one in consumer.consume(1, 0.5) if one.error() is None], "what is open is not read"
            deadline = time.monotonic() + WAIT_S
            while node_id not in sources:  # the client tells while it is polled
                assert time.monotonic() < deadline, f"rack-{node_id} reads from {sources}"
                assert not [one for one in consumer.consume(1, 0.1) if one.error() is None], "nothing more comes"
        finally:
            consumer.close()
    producer.abort_transaction(WAIT_S)
