"""Encoded batches, several in flight: each stored once and in order, whatever happens to those before it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fake_cluster import Close, running
from tests.client.test_producer import cut_off, refusal, stale_metadata, values
from tidelog.client import Client
from tidelog.client.backoff import Deadline
from tidelog.client.batches import BatchSender, Chunk, new_idempotent_producer
from tidelog.client.shared_transaction import PROTOCOL_1, PROTOCOL_2, Identity, protocol_of
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, iterate_batches
from tidelog.wire.batch_records import encode_record

PLAIN = Identity("", 7, 0, PROTOCOL_2)


def chunk(*texts: bytes) -> Chunk:
    payload = b"".join(encode_record(Record(each, 5, None, text), 0, 5) for each, text in enumerate(texts))
    return Chunk(payload, len(texts), 5, 5, 0)


def stored_then_lost(broker: Any, body: Any, version: int) -> Any:
    """The broker stores it, and the answer never comes."""
    broker.cluster.partitions[0].append(bytes(body.topic_data[0].partition_data[0].records))
    return Close


FAULTS = {
    "a leader that moved": [refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER), refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)],
    "what is behind a failed one is out of order": [
        refusal(ErrorCode.NOT_ENOUGH_REPLICAS),
        refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
    "stored, and the connection broke": [stored_then_lost],
    "the last transaction is still being ended": [refusal(ErrorCode.CONCURRENT_TRANSACTIONS)] * 3,
    "one fails after another": [stored_then_lost, refusal(ErrorCode.LEADER_NOT_AVAILABLE), lambda *_: Close],
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_order_holds_and_nothing_is_stored_twice(faults: list[Any]) -> None:
    texts = [b"%d" % number for number in range(12)]
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, *faults)
        sender = BatchSender(client, new_idempotent_producer(client), delivery_timeout_ms=60_000)
        for text in texts:
            sender.send(("t", 0), chunk(text))
        sender.flush()
        assert values(cluster) == texts
        written = sender.written["t", 0]
        batches = [next(iter(iterate_batches(data))) for data in cluster.partitions[0].batches]
    assert written.records == len(texts)
    assert written.checksums == [batch.crc for batch in batches]
    assert [batch.base_sequence for batch in batches] == list(range(12))


def test_a_leader_that_is_cut_off_from_the_others_is_not_believed_for_ever() -> None:
    with running(brokers=3) as cluster, Client(cluster.bootstrap, timeout_ms=20_000) as client:
        cut_off(cluster, 1)
        client.metadata.update(stale_metadata(cluster, 1))
        client.connect(1, Deadline(1_000))
        sender = BatchSender(client, PLAIN, delivery_timeout_ms=20_000)
        sender.send(("t", 0), chunk(b"a"))
        sender.flush()
        assert values(cluster) == [b"a"]


def test_an_order_that_is_wrong_from_the_start_is_not_retried() -> None:
    """Somebody else writes under the same epoch: to go on would mix the two."""
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        sender = BatchSender(client, PLAIN, delivery_timeout_ms=60_000)
        sender.send(("t", 0), chunk(b"x"))
        with pytest.raises(KafkaError) as failure:
            sender.flush()
    assert failure.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, refusal(ErrorCode.INVALID_RECORD))
        given_up = BatchSender(client, PLAIN, delivery_timeout_ms=60_000)
        given_up.send(("t", 0), chunk(b"refused"))
        given_up._post(given_up._in_flight[0][1], Deadline(60_000))  # in flight twice: its answer is a good one
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            given_up.flush()
        cluster.wait_for(ApiKey.PRODUCE, 2)
        cluster.fail(ApiKey.PRODUCE, refusal(ErrorCode.INVALID_RECORD))
        sender = BatchSender(client, Identity("", 8, 0, PROTOCOL_2), delivery_timeout_ms=60_000)
        sender.send(("t", 0), chunk(b"refused, too"))
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            sender.flush()


def test_giving_up_says_why() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.PRODUCE, *[refusal(ErrorCode.NOT_ENOUGH_REPLICAS)] * 100)
        sender = BatchSender(client, PLAIN, delivery_timeout_ms=1_500)
        sender.send(("t", 0), chunk(b"x"))
        with pytest.raises(KafkaError, match="partition t-0") as failure:
            sender.flush()
        assert failure.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_partition_that_is_not_there_is_named() -> None:
    with running(partitions=2) as cluster, Client(cluster.bootstrap) as client:
        sender = BatchSender(client, PLAIN, delivery_timeout_ms=60_000)
        with pytest.raises(KafkaError, match="has no partition 2: it has 2"):
            sender.send(("t", 2), chunk(b"x"))


def test_the_two_protocols_of_transactions_are_never_mixed() -> None:
    old = {int(ApiKey.PRODUCE): (3, 11)}
    with running(versions=old) as cluster, Client(cluster.bootstrap) as client:
        sender = BatchSender(client, Identity("id", 7, 0, PROTOCOL_2), delivery_timeout_ms=60_000)
        with pytest.raises(KafkaError, match="does not go with transactions of protocol 2"):
            sender.send(("t", 0), chunk(b"x"))
        assert cluster.of(ApiKey.PRODUCE) == []
    with running() as cluster, Client(cluster.bootstrap) as client:
        sender = BatchSender(client, Identity("id", 7, 0, PROTOCOL_1), delivery_timeout_ms=60_000)
        sender._sequences["t", 0] = 0  # as if the coordinator knew of the partition
        sender.send(("t", 0), chunk(b"x"))
        sender.flush()
        assert {version for _, key, _, version in cluster.requests if key == ApiKey.PRODUCE} == {11}


def test_a_cluster_without_transactions_is_recognised() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client, pytest.raises(KafkaError, match="has no transact"):
        protocol_of(client)
