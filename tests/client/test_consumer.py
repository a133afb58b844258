"""Reading: every record once and in order, whatever the leaders do; nothing that was aborted."""

from __future__ import annotations

import os
import resource
import time
from typing import Any

import pytest

from tests.client.fake_cluster import Close, Cluster, running
from tidelog.client import EARLIEST, LATEST, Client, Consumer
from tidelog.client.consumer import ConsumedRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch, build_end_marker
from tidelog.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


def fill(cluster: Cluster, *batches: list[bytes], partition: int = 0, **settings: Any) -> None:
    for values in batches:
        records = [Record(number, 1000 + number, None, value) for number, value in enumerate(values)]
        cluster.partitions[partition].append(build_batch(records, **settings))


def read_all(client: Client, cluster: Cluster, start: int = 0, **settings: Any) -> list[bytes | None]:
    consumer = Consumer(client, {("t", 0): start}, **settings)
    return [record.value for record in consumer.read_until({("t", 0): cluster.partitions[0].end})]


def test_everything_up_to_the_end_and_no_further() -> None:
    with running(partitions=2) as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a", b"b"], [b"c"], [b"d", b"e"])
        fill(cluster, [b"x"], partition=1)
        consumer = Consumer(client, {("t", 0): 0, ("t", 1): 0})
        records = list(consumer.read_until({("t", 0): 4, ("t", 1): 1}))
    assert [(one.offset, one.value) for one in records if one.partition == 0] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]
    assert [one.value for one in records if one.partition == 1] == [b"x"]
    assert records[0].timestamp_ms == 1000


def test_a_start_inside_a_batch_leaves_out_what_comes_before() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a", b"b", b"c"], compression=4)
        assert read_all(client, cluster, start=2) == [b"c"]


def test_nothing_new_is_an_empty_answer_and_not_a_wait_for_ever() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        consumer = Consumer(client, {("t", 0): 0}, max_wait_ms=5)
        assert consumer.poll(30) == []
        fill(cluster, [b"a"])
        while not (records := consumer.poll(100)):
            pass
        assert [one.value for one in records] == [b"a"]


def test_it_follows_a_leader_named_in_the_answer() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"], [b"b"], [b"c"], [b"d"], [b"e"])

        def move(broker: Any, body: Any, version: int) -> None:
            cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1

        cluster.fail(ApiKey.FETCH, lambda *_: None, move)
        assert read_all(client, cluster) == [b"a", b"b", b"c", b"d", b"e"]
        assert {broker for broker, key, _, _ in cluster.requests if key == ApiKey.FETCH} == {1, 2}


def test_it_finds_the_new_leader_though_the_old_one_goes_on_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is cut off from the others believes that it leads, and has nothing new for as long as it does."""
    monkeypatch.setattr("tidelog.client.consumer._METADATA_MAX_AGE_MS", 50)

    def cut_off(broker: Any, body: Any, version: int) -> Any:
        if broker.broker_id != 1:
            return None
        data = [PartitionData(partition_index=0, high_watermark=1, records=b"")]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=cluster.TOPIC_ID, partitions=data)])

    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"])
        cluster.fail(ApiKey.FETCH, lambda *_: None, *[cut_off] * 10_000)
        consumer = Consumer(client, {("t", 0): 0}, max_wait_ms=5)
        assert [record.value for record in consumer.poll(10_000)] == [b"a"]
        cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1
        fill(cluster, [b"b"])
        deadline = time.monotonic() + 60
        records: list[ConsumedRecord] = []
        while not records and time.monotonic() < deadline:
            records = consumer.poll(0)
            time.sleep(0.01)
        assert [record.value for record in records] == [b"b"]


def test_it_resumes_where_it_was_when_the_leader_dies() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"], [b"b"], [b"c"], [b"d"], [b"e"])

        def die(broker: Any, body: Any, version: int) -> Any:
            cluster.partitions[0].leader, cluster.partitions[0].epoch = 2, 1
            return Close

        cluster.fail(ApiKey.FETCH, lambda *_: None, die)
        assert read_all(client, cluster) == [b"a", b"b", b"c", b"d", b"e"]


def test_an_offset_that_is_gone_is_told_or_reset() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"], [b"b"], [b"c"])
        cluster.partitions[0].start = 2
        with pytest.raises(KafkaError) as caught:
            read_all(client, cluster)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert read_all(client, cluster, reset=EARLIEST) == [b"c"]
        assert read_all(client, cluster, reset=LATEST) == []


def test_a_reader_of_committed_records_sees_no_aborted_ones() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        transactional = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
        fill(cluster, [b"aborted"], producer_id=5, **transactional)
        fill(cluster, [b"committed"], producer_id=6, **transactional)
        fill(cluster, [b"plain"])
        for producer_id, commit in ((5, False), (6, True)):
            marker = build_end_marker(
                commit=commit, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp=1
            )
            cluster.partitions[0].sequences.clear()
            cluster.partitions[0].append(marker)
        fill(cluster, [b"later"], producer_id=5, **transactional | {"base_sequence": 1})
        cluster.partitions[0].aborted = [(5, 0, 3)]
        assert read_all(client, cluster, read_committed=True) == [b"committed", b"plain", b"later"]
        assert read_all(client, cluster) == [b"aborted", b"committed", b"plain", b"later"]


def test_a_batch_that_was_damaged_on_the_way_is_not_delivered() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"abc"])
        damaged = bytearray(cluster.partitions[0].batches[0])
        damaged[-3] ^= 1
        cluster.partitions[0].batches[0] = bytes(damaged)
        with pytest.raises(KafkaError) as caught:
            read_all(client, cluster)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_topics_are_named_by_id_where_the_broker_can() -> None:
    for highest in (12, 18):
        with running(versions={ApiKey.FETCH: (4, highest)}) as cluster, Client(cluster.bootstrap) as client:
            fill(cluster, [b"a"])
            assert read_all(client, cluster) == [b"a"]
            assert cluster.of(ApiKey.FETCH)[0].topics[0].topic == ("t" if highest == 12 else "")


def test_a_reader_does_not_take_the_answer_that_an_earlier_one_left() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"], [b"b"], [b"c"], [b"d"], [b"e"])
        early = Consumer(client, {("t", 0): 2})
        assert [record.value for record in early.poll(10_000)] == [b"c", b"d"]  # and it has asked for the rest
        assert read_all(client, cluster) == [b"a", b"b", b"c", b"d", b"e"]
        assert [record.value for record in early.poll(10_000)] == [b"e"]


def test_a_reader_that_is_gone_leaves_no_connection_open() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"])
        for _ in range(5):
            assert read_all(client, cluster) == [b"a"]
        assert len(client._connections) <= 2


def test_what_came_beside_a_refusal_is_delivered_before_it_is_raised() -> None:
    with running(partitions=2) as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"], [b"b"])
        consumer = Consumer(client, {("t", 0): 0, ("t", 1): 99})
        assert [record.value for record in consumer.poll(10_000)] == [b"a", b"b"]
        with pytest.raises(KafkaError, match="partition t-1 at offset 99"):
            consumer.poll(10_000)


def test_a_process_with_many_open_files_can_read() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with running() as cluster, Client(cluster.bootstrap) as client:
            fill(cluster, [b"a"])
            assert read_all(client, cluster) == [b"a"]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_reader_that_was_away_for_long_has_all_its_patience_when_it_comes_back() -> None:
    with running() as cluster, Client(cluster.bootstrap, timeout_ms=20_000) as client:
        fill(cluster, [b"a"], [b"b"], [b"c"])
        cluster.fail(ApiKey.FETCH, lambda *_: None, lambda *_: Close, lambda *_: Close)
        consumer = Consumer(client, {("t", 0): 0}, max_wait_ms=5)
        assert [record.value for record in consumer.poll(10_000)] == [b"a", b"b"]
        consumer._patience._at -= 3600  # an hour was spent on those two, and its connection was closed meanwhile
        while not (records := consumer.poll(1_000)):
            pass
        assert [record.value for record in records] == [b"c"]


def test_a_partition_that_nobody_leads_ends_the_wait() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        fill(cluster, [b"a"])
        cluster.partitions[0].leader = -1
        client.refresh(["t"])
        client.timeout_ms = 1_000
        consumer = Consumer(client, {("t", 0): 0})
        with pytest.raises(KafkaError) as caught:
            consumer.poll(60_000)
        assert caught.value.code == ErrorCode.LEADER_NOT_AVAILABLE
