"""Leaders die under a stream and under a task: every record once, in order, as confluent-kafka reads it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka import Producer as ConfluentProducer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.cluster.support import cluster_of, create_topic, load_on
from tests.spark.reading import batch_reader, rows, stream_reader
from tidelog.errors import KafkaError
from tidelog.spark.fetching import RangeFetcher
from tidelog.spark.source_stream import offsets_of
from tidelog.verify.cluster import LocalCluster

ALL = ReadAllAvailable()
PARTITIONS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes."""
    with cluster_of(3) as started:
        yield started


def final_log(cluster: LocalCluster, topic: str, ends: dict[tuple[str, int], int]) -> list[tuple[int, int, bytes]]:
    """Partition, offset and value of every record below the ends, by confluent-kafka."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "judge"})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    found = []
    while len(found) < sum(ends.values()):
        message = consumer.poll(60)
        assert message is not None, f"{len(found)} of {sum(ends.values())} records"
        assert message.error() is None
        where = (message.partition(), message.offset(), message.value())
        if where[1] < ends[topic, where[0]]:
            found.append(where)
    consumer.close()
    return sorted(found)


def test_a_stream_goes_on_over_the_death_of_each_leader(cluster: LocalCluster) -> None:
    create_topic(cluster, "stream", PARTITIONS)
    reader = stream_reader(cluster, subscribe="stream", startingOffsets="earliest")  # type: ignore[arg-type]
    start = reader.initialOffset()
    found: list[dict[str, Any]] = []

    def take_batches(count: int) -> None:
        nonlocal start
        for _ in range(count):
            end = reader.latestOffset(start, ALL)
            assert all(end["stream"][each] >= offset for each, offset in start["stream"].items()), "never back"
            found.extend(rows(reader, reader.partitions(start, end)))
            start = end

    with load_on(cluster, "stream", PARTITIONS) as load:
        for partition in range(PARTITIONS):
            leader = cluster.leader("stream", partition)
            assert leader is not None
            take_batches(5)
            cluster.kill(leader)
            take_batches(10)  # the first of them with a leader that is gone, and metadata that still names it
            load.go_on()
            cluster.start(leader)
            cluster.wait_ready()
            take_batches(5)
    take_batches(1)
    read = sorted((row["partition"], row["offset"], row["value"]) for row in found)
    assert read == final_log(cluster, "stream", offsets_of(start))
    for partition in range(PARTITIONS):
        of_one = [row["offset"] for row in found if row["partition"] == partition]
        assert of_one == sorted(of_one)


def test_a_task_goes_on_when_its_leader_dies_between_two_fetches(cluster: LocalCluster) -> None:
    create_topic(cluster, "task", PARTITIONS)
    producer = ConfluentProducer({"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 50, "acks": "all"})
    for number in range(2000):
        producer.produce("task", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    reader = batch_reader(cluster, subscribe="task", kafka_fetch_max_bytes="1000")  # type: ignore[arg-type]
    (task,) = reader.partitions()
    leader = cluster.leader("task", 0)
    assert leader is not None
    found = []
    for number, batch in enumerate(reader.read(task)):
        found += [(row["partition"], row["offset"], row["value"]) for row in batch.to_pylist()]
        if number == 3:
            cluster.kill(leader)
    wanted = final_log(cluster, "task", {("task", 0): 1000, ("task", 1): 1000})
    assert found == wanted
    cluster.start(leader)
    cluster.wait_ready()
    # And one that is dead when the task comes to ask: by a client that has not met the cluster yet.
    late = batch_reader(cluster, subscribe="task", kafka_client_id="late")  # type: ignore[arg-type]
    tasks = late.partitions()
    leader = cluster.leader("task", 0)
    assert leader is not None
    cluster.kill(leader)
    assert [(row["partition"], row["offset"], row["value"]) for row in rows(late, tasks)] == wanted
    cluster.start(leader)
    cluster.wait_ready()


def test_brokers_that_are_all_gone_are_given_up_on_with_one_sentence(cluster: LocalCluster) -> None:
    create_topic(cluster, "gone", 1)
    producer = ConfluentProducer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    producer.produce("gone", b"0", partition=0)
    assert producer.flush(60) == 0
    settings = {"kafka.default.api.timeout.ms": "3000"}
    reader = batch_reader(cluster, subscribe="gone", **settings)  # type: ignore[arg-type]
    tasks = reader.partitions()
    cluster.kill(*cluster.node_ids)
    with pytest.raises(KafkaError, match=r"gone-0: gave up after 3000 ms: .*connection refused") as caught:
        rows(reader, tasks)
    assert str(caught.value).count("gave up") == 1
    cluster.start()
    cluster.wait_ready()


def test_records_that_do_not_come_are_waited_for_and_not_called_lost(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range that ends behind what its leader has committed, as after an election: the error says what is missing."""
    create_topic(cluster, "behind", 1)
    producer = ConfluentProducer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    producer.produce("behind", b"0", partition=0)
    assert producer.flush(60) == 0
    settings = {"kafkaConsumer.pollTimeoutMs": "2000", "kafka.fetch.max.wait.ms": "50"}
    reader = batch_reader(cluster, subscribe="behind", **settings)  # type: ignore[arg-type]
    (task,) = reader.partitions()
    (wanted,) = task.ranges  # type: ignore[attr-defined]
    object.__setattr__(wanted, "end", 2)
    with pytest.raises(KafkaError, match=r"behind-0: no record at offset 1 came in 2000 ms, though .* serves up to 1"):
        rows(reader, [task])
    waited = []
    before = RangeFetcher._wait_for_records

    def produce_meanwhile(fetcher: RangeFetcher, data: Any) -> None:
        waited.append(fetcher)
        if len(waited) == 2:
            producer.produce("behind", b"1", partition=0)
            assert producer.flush(60) == 0
        before(fetcher, data)

    monkeypatch.setattr(RangeFetcher, "_wait_for_records", produce_meanwhile)
    patient = batch_reader(cluster, subscribe="behind")  # type: ignore[arg-type]
    assert [row["value"] for row in rows(patient, [task])] == [b"0", b"1"]
    assert len(waited) >= 2
