"""`tidelog transactions` against a real node: what is open is seen, what hangs is found and can be ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from tests.cli.conftest import Tidelog
from tests.clients import confluent
from tests.clients.samples import Record
from tests.clients.test_bad_input import Raw
from tests.support.nodes import TidelogNode, passing_node
from tests.transactions.requests import Requests
from tidelog.errors import ErrorCode

PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    # As brokers before KIP-890 were: a record that comes late opens a transaction that nobody knows of.
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def node() -> Iterator[TidelogNode]:
    with passing_node(TidelogNode, PROPERTIES) as started:
        yield started


@pytest.fixture
def ask(tidelog: Tidelog, node: TidelogNode) -> Any:
    def run(*words: object) -> Any:
        outcome = tidelog("transactions", *words, "--bootstrap", node.bootstrap, "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    return run


@pytest.fixture
def topic(node: TidelogNode, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    confluent.create_topic(node, name, 2)
    return name


@pytest.fixture
def producer(node: TidelogNode, topic: str) -> Producer:
    """With an open transaction of one record, under the topic's name."""
    made = confluent.producer(node, transactional_id=topic, transaction_timeout_ms=60_000)
    made.init_transactions(60)
    made.begin_transaction()
    made.produce(topic, b"x", partition=1)
    assert made.flush(60) == 0
    return made


def visible(node: TidelogNode, topic: str, partition: int) -> int:
    """Where readers of committed records see the end."""
    with confluent.reading(node, [TopicPartition(topic, partition, 0)], isolation_level="read_committed") as consumer:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), 60)[1])


def test_an_open_transaction_is_listed_and_described(producer: Producer, topic: str, ask: Any) -> None:
    (listed,) = ask("list", "--state", "Ongoing", "--pattern", topic)
    (described,) = ask("describe", topic)
    assert listed["transactional_id"] == topic
    assert listed["producer_id"] == described["producer_id"]
    assert (described["state"], described["timeout_ms"]) == ("Ongoing", 60_000)
    assert described["partitions"] == [{"topic": topic, "partition": 1}]
    assert described["open_for_ms"] >= 0
    assert ask("list", "--longer-than-ms", 3_600_000) == []
    assert ask("find-hanging", "--topic", topic) == [], "it is open, and its coordinator knows it"
    producer.commit_transaction(20)
    (described,) = ask("describe", topic)
    assert (described["partitions"], described["open_for_ms"]) == ([], None)


def test_a_transaction_is_aborted_by_its_id(producer: Producer, topic: str, node: TidelogNode, ask: Any) -> None:
    assert visible(node, topic, 1) == 0
    ask("abort", topic)
    assert visible(node, topic, 1) == 2
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)


def test_what_hangs_is_found_and_ended(topic: str, node: TidelogNode, ask: Any, tidelog: Tidelog) -> None:
    requests = Requests(Raw(node).ask, topic, lambda: None)
    assert requests.produce("nobody", 12_345, 0) is ErrorCode.NONE
    confluent.produce_all(node, topic, [Record(None, b"behind it", 1)])
    assert visible(node, topic, 0) == 0
    (found,) = ask("find-hanging", "--topic", topic)
    assert (found["topic"], found["partition"], found["start_offset"]) == (topic, 0, 0)
    assert found["producer_id"] == 12_345
    assert ask("find-hanging") == [found], "in every topic as well"
    told = tidelog("transactions", "find-hanging", "--bootstrap", node.bootstrap).out
    command = f"tidelog transactions abort --topic {topic} --partition 0 --start-offset 0"
    assert command in told
    ask(*command.split()[2:])
    assert visible(node, topic, 0) == 3
    assert ask("find-hanging", "--topic", topic) == []


def test_a_record_after_the_end_hangs_though_its_coordinator_knows_the_producer(
    producer: Producer, topic: str, node: TidelogNode, ask: Any
) -> None:
    """As after an unclean election that lost the marker: open in the partition, complete for the coordinator."""
    producer.commit_transaction(20)
    (described,) = ask("describe", topic)
    requests = Requests(Raw(node).ask, topic, lambda: None)
    identity = (topic, described["producer_id"], described["producer_epoch"])
    assert requests.produce(*identity, 1, index=1) is ErrorCode.NONE
    (found,) = ask("find-hanging", "--topic", topic)
    assert (found["partition"], found["producer_id"], found["start_offset"]) == (1, described["producer_id"], 2)
    ask("abort", "--topic", topic, "--partition", 1, "--start-offset", 2)
    assert ask("find-hanging", "--topic", topic) == []
    assert visible(node, topic, 1) == 4


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("abort",), 2, "TRANSACTIONAL-ID"),
        (("abort", "x", "--topic", "t"), 2, "TRANSACTIONAL-ID"),
        (("abort", "--topic", "t", "--partition", 0), 2, "--start-offset"),
        (("abort", "nobody"), 1, "TRANSACTIONAL_ID_NOT_FOUND"),
        (("describe", "nobody"), 1, "TRANSACTIONAL_ID_NOT_FOUND"),
        (("list", "--state", "Nonsense"), 1, "Nonsense"),
        (("list", "--pattern", "("), 1, "INVALID_REGULAR_EXPRESSION"),
        (("find-hanging", "--partition", 0), 2, "--topic"),
        (("find-hanging", "--topic", "nothing"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
    ids=str,
)
def test_mistakes_get_one_clear_line(
    words: tuple[object, ...], code: int, complaint: str, node: TidelogNode, tidelog: Tidelog
) -> None:
    outcome = tidelog("transactions", *words, "--bootstrap", node.bootstrap)
    assert (outcome.code, complaint in outcome.err) == (code, True), outcome.err


def test_no_transaction_starts_there(topic: str, node: TidelogNode, tidelog: Tidelog) -> None:
    words = ("abort", "--topic", topic, "--partition", 0, "--start-offset", 7)
    outcome = tidelog("transactions", *words, "--bootstrap", node.bootstrap)
    assert (outcome.code, "INVALID_TXN_STATE" in outcome.err) == (1, True), outcome.err
