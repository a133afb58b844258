"""confluent-kafka (librdkafka) writes and reads by assign: what was written comes back, whole and in order."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from tests.clients import confluent, samples
from tests.clients.conftest import TopicMaker
from tests.clients.samples import CODECS, Record
from tests.support.nodes import Node


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_shape_of_record_comes_back(node: Node, make_topic: TopicMaker, codec: str, idempotent: bool) -> None:
    topic = make_topic()
    written = samples.every_shape()
    acknowledged = confluent.produce_all(
        node, topic, written, compression_type=codec, enable_idempotence=idempotent, acks="all"
    )
    read = confluent.consume_all(node, topic, len(written))
    assert [confluent.as_record(each) for each in read] == written
    assert [each.offset() for each in read] == list(range(len(written)))
    assert [each.offset() for each in acknowledged] == list(range(len(written)))
    assert {each.timestamp()[0] for each in read} == {TIMESTAMP_CREATE_TIME}


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_log_append_time_is_the_brokers(node: Node, make_topic: TopicMaker, codec: str) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000) - 1
    confluent.produce_all(node, topic, samples.every_shape(), compression_type=codec)
    after_ms = int(time.time() * 1000) + 1
    read = confluent.consume_all(node, topic, len(samples.every_shape()))
    for message, original in zip(read, samples.every_shape(), strict=True):
        kind, timestamp_ms = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before_ms <= timestamp_ms <= after_ms
        assert (message.key(), message.value()) == (original.key, original.value)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_records_of_one_megabyte(node: Node, make_topic: TopicMaker, codec: str) -> None:
    topic = make_topic()
    noise = random.Random(3)
    written = [Record(b"%d" % number, noise.randbytes(1_000_000), 1000 + number) for number in range(12)]
    confluent.produce_all(node, topic, written, compression_type=codec, message_max_bytes=1_100_000)
    read = confluent.consume_all(node, topic, len(written))
    assert [confluent.as_record(each) for each in read] == written


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(node: Node, make_topic: TopicMaker, acks: str) -> None:
    topic = make_topic()
    written = [Record(None, value, 1) for value in samples.numbered(2_000)]
    confluent.produce_all(node, topic, written, acks=acks, enable_idempotence=False)
    read = confluent.consume_all(node, topic, len(written))
    assert [each.value() for each in read] == [each.value for each in written]


def test_many_partitions_each_keep_their_order(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=40)
    writer = confluent.producer(node, enable_idempotence=True)
    for number in range(8_000):
        writer.produce(topic, value=b"%d" % number, partition=number % 40)
        writer.poll(0)
    assert writer.flush(confluent.WAIT_S) == 0
    with confluent.reading(node, [TopicPartition(topic, each, 0) for each in range(40)]) as consumer:
        read = confluent.take(consumer, 8_000)
    for partition in range(40):
        values = [int(each.value() or b"") for each in read if each.partition() == partition]
        assert values == list(range(partition, 8_000, 40))


def test_keys_choose_the_same_partition_every_time(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=8)
    records = [Record(b"user-%d" % (number % 50), b"%d" % number, 1) for number in range(1_000)]
    acknowledged = confluent.produce_all(node, topic, records, partition=-1)
    homes = {each.key(): each.partition() for each in acknowledged}
    assert all(homes[each.key()] == each.partition() for each in acknowledged)
    assert len(set(homes.values())) > 4


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_a_hundred_thousand_records_in_order(node: Node, make_topic: TopicMaker, idempotent: bool) -> None:
    topic = make_topic(segment_bytes="2097152")
    values = samples.numbered(100_000)
    settings = {"enable_idempotence": idempotent, "batch_size": 100_000}
    confluent.produce_all(node, topic, (Record(None, value, 1) for value in values), **settings)
    read = confluent.consume_all(node, topic, len(values))
    assert [each.value() for each in read] == values
    assert [each.offset() for each in read] == list(range(len(values)))


def test_a_waiting_reader_gets_a_new_record_at_once(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, [Record(None, b"first", 1)])
    with confluent.reading(node, [TopicPartition(topic, 0, 0)], fetch_wait_max_ms=50_000) as consumer:
        confluent.take(consumer, 1)
        assert consumer.poll(0.3) is None
        confluent.produce_all(node, topic, [Record(None, b"second", 1)])
        (message,) = confluent.take(consumer, 1, timeout_s=30)
        assert message.value() == b"second"


def test_a_batch_larger_than_the_fetch_limit_still_comes(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    written = [Record(None, bytes([each]) * 200_000, 1) for each in range(10)]
    confluent.produce_all(node, topic, written)
    read = confluent.consume_all(
        node, topic, 10, fetch_message_max_bytes=1_000, fetch_max_bytes=1_000, message_max_bytes=1_000
    )
    assert [each.value() for each in read] == [each.value for each in written]


def test_a_record_over_the_limit_is_refused_and_the_rest_stored(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(max_message_bytes="20000")
    with pytest.raises(KafkaException) as refused:
        confluent.produce_all(node, topic, [Record(None, bytes(30_000), 1)])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    confluent.produce_all(node, topic, [Record(None, b"small", 1)])
    assert [each.value() for each in confluent.consume_all(node, topic, 1)] == [b"small"]


def test_a_topic_is_made_by_the_first_write(node: Node) -> None:
    confluent.produce_all(node, "made-by-writing", [Record(None, b"hello", 1)])
    assert [each.value() for each in confluent.consume_all(node, "made-by-writing", 1)] == [b"hello"]
    assert len(confluent.admin(node).list_topics(timeout=60).topics["made-by-writing"].partitions) == 1


def test_asking_for_an_unknown_topic_is_an_error_and_makes_nothing(node: Node) -> None:
    with confluent.reading(node, []) as consumer:
        answer = consumer.list_topics("nobody-made-this", timeout=60).topics["nobody-made-this"]
        assert answer.error is not None
        assert answer.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert "nobody-made-this" not in consumer.list_topics(timeout=60).topics


def test_writing_to_a_partition_that_is_not_there_is_refused(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    with pytest.raises(KafkaException) as refused:
        confluent.produce_all(node, topic, [Record(None, b"lost?", 1)], partition=7, message_timeout_ms=3_000)
    assert refused.value.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)


def test_reading_outside_the_log_is_an_error(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, [Record(None, b"only", 1)])
    with pytest.raises(KafkaException) as refused:
        confluent.consume_all(node, topic, 1, offset=17)
    assert refused.value.args[0].code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)


def test_offsets_for_times_and_watermarks(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(segment_bytes="1048576")
    base_ms = samples.BASE_TIMESTAMP_MS
    records = [Record(None, bytes(1000), base_ms + number * 10) for number in range(5_000)]
    confluent.produce_all(node, topic, records, batch_size=20_000)
    with confluent.reading(node, [TopicPartition(topic, 0, 0)]) as consumer:
        for wanted_ms, offset in [(0, 0), (base_ms, 0), (base_ms + 1, 1), (base_ms + 41_237, 4_124)]:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, wanted_ms)], 60)
            assert found.offset == offset
        (beyond,) = consumer.offsets_for_times([TopicPartition(topic, 0, base_ms + 50_000)], 60)
        assert beyond.offset == -1, "a time after the last record has no offset: the end"
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 60) == (0, 5_000)


def test_seeking_back_reads_again(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    values = samples.numbered(500)
    confluent.produce_all(node, topic, [Record(None, each, 1) for each in values])
    with confluent.reading(node, [TopicPartition(topic, 0, OFFSET_BEGINNING)]) as consumer:
        assert [each.value() for each in confluent.take(consumer, 500)] == values
        consumer.seek(TopicPartition(topic, 0, 250))
        assert [each.value() for each in confluent.take(consumer, 250)] == values[250:]


def test_an_idempotent_and_a_plain_producer_share_a_partition(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    for turn in range(4):
        values = samples.numbered(300)
        confluent.produce_all(
            node, topic, [Record(b"%d" % turn, each, 1) for each in values], enable_idempotence=turn % 2 == 0
        )
    read = confluent.consume_all(node, topic, 1_200)
    assert [each.value() for each in read] == samples.numbered(300) * 4
