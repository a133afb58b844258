"""Writing: nothing lost, nothing twice when that was asked for, order kept, and errors with their codes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fake_cluster import ANSWERS, Close, Cluster, running
from tidelog.client import Client, Delivery, Producer
from tidelog.client.backoff import Deadline
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import iterate_batches, iterate_records
from tidelog.wire.messages.metadata import MetadataRequest
from tidelog.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def values(cluster: Cluster, partition: int = 0) -> list[bytes | None]:
    return [
        record.value
        for data in cluster.partitions[partition].batches
        for batch in iterate_batches(data)
        for record in iterate_records(batch)
    ]


def refusal(code: int) -> Any:
    return lambda broker, body, version: ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t",
                topic_id=Cluster.TOPIC_ID,
                partition_responses=[PartitionProduceResponse(index=0, error_code=code)],
            )
        ]
    )


def stale_metadata(cluster: Cluster, broker_id: int) -> Any:
    """What a broker tells that was cut off from the others while it led everything."""
    answer = ANSWERS[ApiKey.METADATA](cluster.brokers[0], MetadataRequest(topics=None), 12)
    for partition in answer.topics[0].partitions:
        partition.leader_id, partition.leader_epoch = broker_id, 0
    return answer


def cut_off(cluster: Cluster, broker_id: int) -> None:
    """Let the broker after this one lead, which this one does not hear of: nobody acknowledges what it is sent."""
    for partition in cluster.partitions:
        partition.leader, partition.epoch = broker_id + 1, 1

    def only_there(answer: Any) -> Any:
        return lambda broker, *rest: answer(broker, *rest) if broker.broker_id == broker_id else None

    cluster.fail(ApiKey.METADATA, *[only_there(lambda *_: stale_metadata(cluster, broker_id))] * 1000)
    cluster.fail(ApiKey.PRODUCE, *[only_there(refusal(ErrorCode.REQUEST_TIMED_OUT))] * 1000)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_as_they_were_sent(compression: str) -> None:
    delivered: list[Delivery] = []
    with running() as cluster, Client(cluster.bootstrap) as client:
        with Producer(client, compression=compression, on_delivery=delivered.append) as producer:
            producer.send("t", b"one", key=b"k", headers=[("h", b"x"), ("n", None)], timestamp_ms=5)
            producer.send("t", None, partition=0)
        records = [
            record for batch in iterate_batches(cluster.partitions[0].batches[0]) for record in iterate_records(batch)
        ]
    assert (records[0].key, records[0].value, records[0].timestamp) == (b"k", b"one", 5)
    assert list(records[0].headers) == [("h", b"x"), ("n", None)]
    assert (records[1].key, records[1].value) == (None, None)
    assert [(one.topic, one.partition, one.base_offset, one.record_count) for one in delivered] == [("t", 0, 0, 2)]


def test_keys_go_where_javas_producer_puts_them() -> None:
    with running(partitions=8) as cluster, Client(cluster.bootstrap) as client:
        with Producer(client) as producer:
            for key in (b"21", b"foobar", b"a-little-bit-long-string"):
                producer.send("t", key, key=key)
        found = {value: number for number in range(8) for value in values(cluster, number)}
    # Kafka's own test vectors for murmur2, made positive, modulo 8.
    assert found == {
        b"21": (-973932308 & 0x7FFFFFFF) % 8,
        b"foobar": (-790332482 & 0x7FFFFFFF) % 8,
        b"a-little-bit-long-string": (-985981536 & 0x7FFFFFFF) % 8,
    }


def test_records_without_a_key_fill_one_batch_before_the_next_partition() -> None:
    with running(partitions=8) as cluster, Client(cluster.bootstrap) as client:
        with Producer(client) as producer:
            for number in range(20):
                producer.send("t", b"%d" % number)
        assert sorted(len(values(cluster, number)) for number in range(8)) == [0] * 7 + [20]


def test_order_holds_over_many_batches_and_a_failure_between_them() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, lambda *_: None, refusal(ErrorCode.NOT_ENOUGH_REPLICAS), lambda *_: Close)
        with Producer(client, batch_bytes=100) as producer:
            for number in range(50):
                producer.send("t", b"%d" % number, partition=0)
        assert values(cluster) == [b"%d" % number for number in range(50)]


def test_a_new_leader_named_in_the_answer_is_followed_without_asking() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        client.topic("t")
        cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1
        with Producer(client) as producer:
            producer.send("t", b"x")
        assert values(cluster) == [b"x"]
        assert [broker for broker, key, _, _ in cluster.requests if key == ApiKey.PRODUCE] == [1, 2]


def test_a_leader_that_dies_is_replaced_by_the_next() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        with Producer(client) as producer:
            producer.send("t", b"before")
            producer.flush()
            cluster.brokers[0].stop()
            cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1
            producer.send("t", b"after")
        assert values(cluster) == [b"before", b"after"]


def lose_the_answer(broker: Any, body: Any, version: int) -> Any:
    for topic in body.topic_data:
        for data in topic.partition_data:
            broker.cluster.partitions[data.index].append(bytes(data.records))
    return Close


def test_a_leader_that_is_cut_off_from_the_others_is_not_believed_for_ever() -> None:
    with running(brokers=3) as cluster, Client(cluster.bootstrap, timeout_ms=20_000) as client:
        cut_off(cluster, 1)
        with Producer(client) as producer:
            client.metadata.update(stale_metadata(cluster, 1))
            client.connect(1, Deadline(1_000))
            producer.send("t", b"a")
        assert values(cluster) == [b"a"]


def test_a_lost_answer_means_a_duplicate_without_idempotence_and_none_with_it() -> None:
    stored = {}
    for idempotent in (False, True):
        with running() as cluster, Client(cluster.bootstrap) as client:
            cluster.fail(ApiKey.PRODUCE, lose_the_answer)
            with Producer(client, idempotent=idempotent) as producer:
                producer.send("t", b"once")
            stored[idempotent] = values(cluster)
    assert stored == {False: [b"once", b"once"], True: [b"once"]}


def test_sequences_run_on_over_batches() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        with Producer(client, idempotent=True) as producer:
            for _ in range(2):
                producer.send("t", b"a")
                producer.send("t", b"b")
                producer.flush()
        headers = [next(iterate_batches(data)) for data in cluster.partitions[0].batches]
    assert [(one.producer_id, one.base_sequence, one.last_sequence) for one in headers] == [(7, 0, 1), (7, 2, 3)]


def test_a_batch_that_is_too_large_is_sent_in_halves() -> None:
    def too_large(broker: Any, body: Any, version: int) -> Any:
        return refusal(ErrorCode.MESSAGE_TOO_LARGE)(broker, body, version)

    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, too_large, too_large)
        with Producer(client, idempotent=True) as producer:
            for number in range(5):
                producer.send("t", b"%d" % number, partition=0)
        assert values(cluster) == [b"0", b"1", b"2", b"3", b"4"]
        assert len(cluster.partitions[0].batches) == 3


def test_one_record_that_is_too_large_is_an_error() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, refusal(ErrorCode.MESSAGE_TOO_LARGE))
        producer = Producer(client)
        producer.send("t", b"x")
        with pytest.raises(KafkaError) as caught:
            producer.flush()
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
        producer.flush()  # what was refused is not tried for ever
        assert values(cluster) == []


def test_retries_end() -> None:
    with running() as cluster, Client(cluster.bootstrap, timeout_ms=1_500) as client:
        cluster.fail(ApiKey.PRODUCE, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 100)
        producer = Producer(client)
        producer.send("t", b"x")
        with pytest.raises(KafkaError) as caught:
            producer.flush()
        assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one() -> None:
    delivered: list[Delivery] = []

    def refuse_at(broker_id: int) -> Any:
        def fault(broker: Any, body: Any, version: int) -> Any:
            if broker.broker_id != broker_id:
                return None
            refused = PartitionProduceResponse(index=broker_id - 1, error_code=ErrorCode.INVALID_RECORD)
            return ProduceResponse(
                responses=[TopicProduceResponse(name="t", topic_id=Cluster.TOPIC_ID, partition_responses=[refused])]
            )

        return fault

    with running(brokers=2, partitions=2) as cluster, Client(cluster.bootstrap) as client:
        cluster.partitions[1].leader = 2
        producer = Producer(client, on_delivery=delivered.append)
        # Both leaders are asked; the first refuses, so that the second's good answer is never looked at.
        cluster.fail(ApiKey.PRODUCE, refuse_at(1), refuse_at(1))
        producer.send("t", b"refused", partition=0)
        producer.send("t", b"stored", partition=1)
        with pytest.raises(KafkaError, match="partition t-0"):
            producer.flush()
        cluster.wait_for(ApiKey.PRODUCE, 2)
        cluster.fail(ApiKey.PRODUCE, refuse_at(2))
        producer.send("t", b"refused", partition=1)
        with pytest.raises(KafkaError, match="partition t-1"):
            producer.flush()
        assert values(cluster, 1) == [b"stored"]
    assert delivered == []


def test_acks_zero_waits_for_nobody() -> None:
    delivered: list[Delivery] = []
    with running() as cluster, Client(cluster.bootstrap) as client:
        with Producer(client, acks=0, on_delivery=delivered.append) as producer:
            producer.send("t", b"x")
        client.refresh(["t"])  # on the same connection, so the record has arrived
        assert values(cluster) == [b"x"]
        assert delivered[0].base_offset == -1


def test_settings_that_contradict_are_refused() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        with pytest.raises(ConfigError, match="idempotent"):
            Producer(client, idempotent=True, acks=1)
        with pytest.raises(ConfigError, match="none, gzip, snappy, lz4, zstd"):
            Producer(client, compression="rar")
        with pytest.raises(KafkaError, match="no partition 9"):
            Producer(client).send("t", b"", partition=9)
