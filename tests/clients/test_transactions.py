"""Transactions of confluent-kafka producers: all of one is read, or nothing of it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.support.nodes import Node
from tests.support.processes import wait_until

NODE_PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}
WAIT_S = 60.0


def transactional(node: Node, transactional_id: str, **settings: object) -> Producer:
    """An initialised producer."""
    producer = confluent.producer(node, transactional_id=transactional_id, **settings)
    producer.init_transactions(WAIT_S)
    return producer


def write(producer: Producer, topic: str, values: list[str], partitions: int = 1) -> None:
    """Write in turn to the partitions, within the open transaction."""
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % partitions)
    producer.flush(WAIT_S)


def read_committed(node: Node, topic: str, count: int, partitions: int = 1) -> list[str]:
    """Exactly these many committed records are there: what comes behind them is another transaction's or nothing."""
    with confluent.reading(
        node, [TopicPartition(topic, index, 0) for index in range(partitions)], isolation_level="read_committed"
    ) as consumer:
        values = [message.value().decode() for message in confluent.take(consumer, count)]
        assert not [one for one in consumer.consume(1, 0.3) if one.error() is None], "one record too many"
    return values


def stable_end(node: Node, topic: str, partition: int = 0) -> tuple[int, int]:
    """Where readers of committed records, and of all records, see the end."""
    ends = []
    for level in ("read_committed", "read_uncommitted"):
        with confluent.reading(node, [TopicPartition(topic, partition, 0)], isolation_level=level) as consumer:
            ends.append(consumer.get_watermark_offsets(TopicPartition(topic, partition), WAIT_S)[1])
    return ends[0], ends[1]


def test_what_is_committed_is_read_and_what_is_aborted_is_not(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(2)
    producer = transactional(node, topic)
    for number in range(6):
        producer.begin_transaction()
        write(producer, topic, [f"{number}-{index}" for index in range(4)], partitions=2)
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    read = read_committed(node, topic, 12, partitions=2)
    assert sorted(read) == [f"{number}-{index}" for number in (0, 2, 4) for index in range(4)]
    with confluent.reading(
        node, [TopicPartition(topic, index, 0) for index in range(2)], isolation_level="read_uncommitted"
    ) as consumer:
        assert len(confluent.take(consumer, 24)) == 24


def test_an_open_transaction_holds_readers_of_committed_records_back(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    first, second = transactional(node, f"{topic}-1"), transactional(node, f"{topic}-2")
    first.begin_transaction()
    write(first, topic, ["first"])
    second.begin_transaction()
    write(second, topic, ["second"])
    second.commit_transaction(WAIT_S)
    wait_until(lambda: stable_end(node, topic) == (0, 3), WAIT_S, "the marker is there: a commit is answered before")
    assert read_committed(node, topic, 0) == []
    first.commit_transaction(WAIT_S)
    assert read_committed(node, topic, 2) == ["first", "second"]
    assert stable_end(node, topic) == (4, 4)


def test_a_second_producer_fences_the_first_and_aborts_what_it_left(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    zombie = transactional(node, topic)
    zombie.begin_transaction()
    write(zombie, topic, ["left open"])
    successor = transactional(node, topic)
    successor.begin_transaction()
    write(successor, topic, ["good"])
    successor.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(WAIT_S)
    assert caught.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert read_committed(node, topic, 1) == ["good"]


def test_a_transaction_past_its_time_is_aborted(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    producer = transactional(node, topic, transaction_timeout_ms=1_000)
    producer.begin_transaction()
    write(producer, topic, ["too late"])
    other = transactional(node, f"{topic}-other")
    other.begin_transaction()
    write(other, topic, ["in time"])
    other.commit_transaction(WAIT_S)
    assert read_committed(node, topic, 1) == ["in time"], "readers go on when the time is up"
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def test_offsets_are_committed_with_the_transaction(node: Node, make_topic: TopicMaker) -> None:
    source, target = make_topic(), make_topic()
    confluent.produce_all(node, source, [Record(None, b"%d" % number, 1) for number in range(10)])
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": source,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.subscribe([source])
        rows = confluent.take(consumer, 10)
        producer = transactional(node, source)
        for attempt in ("aborted", "committed"):
            producer.begin_transaction()
            write(producer, target, [f"{attempt} {row.value().decode()}" for row in rows])
            producer.send_offsets_to_transaction(
                [TopicPartition(source, 0, 10)], consumer.consumer_group_metadata(), WAIT_S
            )
            if attempt == "aborted":
                producer.abort_transaction(WAIT_S)
                assert consumer.committed([TopicPartition(source, 0)], WAIT_S)[0].offset < 0
            else:
                producer.commit_transaction(WAIT_S)
                assert consumer.committed([TopicPartition(source, 0)], WAIT_S)[0].offset == 10
        assert read_committed(node, target, 10) == [f"committed {number}" for number in range(10)]
    finally:
        consumer.close()


def test_many_transactions_in_a_row(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(3)
    producer = transactional(node, topic)
    for number in range(50):
        producer.begin_transaction()
        for index in range(3):
            producer.produce(topic, b"%d" % number, partition=index)
        producer.commit_transaction(WAIT_S)
    assert sorted(map(int, read_committed(node, topic, 150, partitions=3))) == sorted([*range(50)] * 3)
