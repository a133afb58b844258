"""Apache Kafka started on a copy of our directory serves every record, and we on a copy of Kafka's."""

from __future__ import annotations

import copy
from pathlib import Path

from tests.clients import confluent, samples
from tests.clients.samples import Record
from tests.interop import judge, stock
from tests.interop.conftest import Filled
from tests.interop.toolbox import Toolbox
from tests.support.nodes import KafkaNode, Node


def test_kafka_serves_our_directory(filled: Filled, scratch: Path) -> None:
    contents = copy.deepcopy(filled.stock)
    with filled.take_over(KafkaNode, scratch) as kafka:
        stock.check_served(kafka, contents)
        stock.write_more(kafka, contents)
        stock.check_served(kafka, contents)


def test_we_serve_the_directory_of_kafka(
    filled_by_kafka: Filled, successor: type[Node], scratch: Path, toolbox: Toolbox
) -> None:
    contents = copy.deepcopy(filled_by_kafka.stock)
    with filled_by_kafka.take_over(successor, scratch) as node:
        stock.check_served(node, contents)
        stock.write_more(node, contents)
        stock.check_served(node, contents)
    judge.judge_everything(toolbox, node.data_directory)


def test_there_and_back_again(filled: Filled, successor: type[Node], scratch: Path, toolbox: Toolbox) -> None:
    """Our directory, then Kafka on it, then we again: each goes on where the other stopped."""
    contents = copy.deepcopy(filled.stock)
    with filled.take_over(KafkaNode, scratch / "kafka") as kafka:
        stock.write_more(kafka, contents)
    with Filled(kafka, contents).take_over(successor, scratch / "back") as node:
        stock.check_served(node, contents)
        stock.write_more(node, contents)
        stock.check_served(node, contents)
    judge.judge_everything(toolbox, node.data_directory)


def test_kafka_serves_our_directory_after_a_kill(successor: type[Node], scratch: Path) -> None:
    """No clean stop, no last checkpoint: Kafka recovers from our files as from its own."""
    contents = stock.Stock()
    node = successor(scratch / "killed")
    with node:
        confluent.create_topic(node, "killed", 2, {"segment.bytes": "1048576"})
        for partition in range(2):
            for turn, codec in enumerate(samples.CODECS):
                records = stock.now_records(600, 800, partition * 10 + turn)
                confluent.produce_all(
                    node, "killed", records, partition=partition, compression_type=codec, enable_idempotence=turn > 2
                )
                contents.records.setdefault(("killed", partition), []).extend(records)
        stock.remember_ids(node, contents)
        node.kill()
    with Filled(node, contents).take_over(KafkaNode, scratch / "kafka") as kafka:
        stock.check_served(kafka, contents)


def test_a_producer_goes_on_over_the_change(filled: Filled, scratch: Path) -> None:
    """An idempotent producer that wrote to us keeps its sequence when Kafka takes over: no repeat, no refusal."""
    original = filled.take_over(type(filled.node), scratch / "first")
    with original:
        confluent.create_topic(original, "goes-on", 1)
        writer = confluent.producer(original, enable_idempotence=True, message_timeout_ms=60_000, log_level=0)
        failures: list[object] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for number in range(100):
            writer.produce("goes-on", value=b"%d" % number, partition=0, on_delivery=delivered)
        assert writer.flush(60) == 0
    with Filled(original, filled.stock).take_over(KafkaNode, scratch / "second") as kafka:
        for number in range(100, 200):
            writer.produce("goes-on", value=b"%d" % number, partition=0, on_delivery=delivered)
        assert writer.flush(60) == 0
        assert not failures
        read = confluent.consume_all(kafka, "goes-on", 200)
        assert [confluent.as_record(each).value for each in read] == [b"%d" % each for each in range(200)]
        confluent.produce_all(kafka, "goes-on", [Record(None, b"another", 1)], enable_idempotence=True)
