"""Apache Kafka's transactional copier, kafka-transactions and DumpLogSegments on our transactions, v1 and v2."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from tests.clients import confluent
from tests.clients.samples import Record
from tests.clients.test_bad_input import Raw
from tests.clients.test_transactions import read_committed
from tests.cluster.support import cluster_of, create_topic
from tests.interop.toolbox import Toolbox
from tests.support import java
from tests.support.nodes import KafkaNode, Node, TidelogNode, passing_node
from tests.transactions.exactly_once import SETTINGS
from tests.transactions.requests import V1, V2, Requests, Versions
from tidelog.errors import ErrorCode

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
RECORDS = 100
COPIED = 6_000


@pytest.fixture(scope="module")
def node() -> Iterator[TidelogNode]:
    with passing_node(TidelogNode, PROPERTIES) as started:
        yield started


def transactions(toolbox: Toolbox, node: TidelogNode, *words: str) -> list[list[str]]:
    """The lines of a table that kafka-transactions prints, without its head."""
    said = toolbox.run(TRANSACTIONS, "--bootstrap-server", node.bootstrap, *words)
    return [line.split() for line in said.splitlines() if line.strip()][1:]


def open_one(node: TidelogNode, topic: str) -> Producer:
    producer = confluent.producer(node, transactional_id=topic, transaction_timeout_ms=60_000)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0
    return producer


@pytest.mark.parametrize("level", [2, 0])
def test_the_java_client_copies_exactly_once(toolbox: Toolbox, node: TidelogNode, level: int) -> None:
    """Transactions v2, then v1: the client goes by the feature level of the cluster."""
    way = "upgrade" if level else "downgrade"
    toolbox.run(FEATURES, "--bootstrap-server", node.bootstrap, way, "--feature", f"transaction.version={level}")
    source, target = f"source-{level}", f"target-{level}"
    for topic in (source, target):
        confluent.create_topic(node, topic)
    confluent.produce_all(node, source, [Record(None, b"%d" % number, 1) for number in range(RECORDS)])
    said = java.run_tool(
        COPIER,
        *("--broker-list", node.bootstrap, "--input-topic", source, "--input-partition", "0"),
        *("--output-topic", target, "--consumer-group", source, "--transactional-id", source),
        *("--transaction-size", "7", "--enable-random-aborts", "--use-group-metadata"),
    )
    assert '"stage":"ShutdownComplete"' in said or "ShutdownComplete" in said
    assert read_committed(node, target, RECORDS) == [str(number) for number in range(RECORDS)]
    read = toolbox.run(
        CONSUMER,
        *("--bootstrap-server", node.bootstrap, "--topic", target, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--timeout-ms", "60000", "--isolation-level", "read_committed"),
    )
    assert [line for line in read.splitlines() if line.isdigit()] == [str(number) for number in range(RECORDS)]
    (segment,) = (node.data_directory / "__transaction_state-0").glob("*.log")
    dumped = java.run_tool(DUMP, "--transaction-log-decoder", "--files", str(segment))
    states = re.findall(rf"key: transaction_metadata::transactionalId={source} .*state=(\w+)", dumped) or re.findall(
        r'"transactionStatus":(\d)', dumped
    )
    assert len(states) > RECORDS // 7, dumped[-3000:]
    assert "isvalid: false" not in dumped
    toolbox.run(FEATURES, "--bootstrap-server", node.bootstrap, "upgrade", "--feature", "transaction.version=2")


def test_kafka_transactions_sees_what_is_open_and_ends_it(toolbox: Toolbox, node: TidelogNode) -> None:
    topic = "seen"
    confluent.create_topic(node, topic)
    producer = open_one(node, topic)
    listed = transactions(toolbox, node, "list")
    assert [row[3] for row in listed if row[0] == topic] == ["Ongoing"]
    (described,) = transactions(toolbox, node, "describe", "--transactional-id", topic)
    assert topic in described
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    (known,) = transactions(toolbox, node, "describe-producers", "--topic", topic, "--partition", "0")
    assert known[-1] == "0", "the offset that it starts at"
    assert transactions(toolbox, node, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0") == []
    transactions(toolbox, node, "forceTerminateTransaction", "--transactionalId", topic)
    listed = transactions(toolbox, node, "list")
    assert "Ongoing" not in [row[3] for row in listed if row[0] == topic]
    assert read_committed(node, topic, 0) == []
    del producer


def test_kafka_transactions_ends_what_hangs(toolbox: Toolbox, node: TidelogNode) -> None:
    topic = "hangs"
    confluent.create_topic(node, topic)
    requests = Requests(Raw(node).ask, topic, lambda: None)
    off = {"transaction.partition.verification.enable": "false"}
    set_on_broker(node, off)
    assert requests.produce("nobody", 54_321, 3) is ErrorCode.NONE
    set_on_broker(node, {"transaction.partition.verification.enable": "true"})
    words = ("find-hanging", "--topic", topic, "--partition", "0", "--max-transaction-timeout", "0")
    (found,) = transactions(toolbox, node, *words)
    assert found[:3] == [topic, "0", "54321"]
    transactions(toolbox, node, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert transactions(toolbox, node, *words) == []
    confluent.produce_all(node, topic, [Record(None, b"behind it", 1)])
    assert read_committed(node, topic, 1) == ["behind it"]


def set_on_broker(node: TidelogNode, settings: dict[str, str]) -> None:
    """Change run-time settings of the broker."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    client = confluent.admin(node)
    for outcome in client.incremental_alter_configs([resource]).values():
        outcome.result(60)


def test_the_java_client_copies_exactly_once_whatever_is_killed() -> None:
    """Transactions v2 of the Java client, with kill -9 of leaders and coordinators under it."""
    chance = random.Random(5)
    with cluster_of(3, **SETTINGS) as cluster:
        for topic in ("in", "out"):
            create_topic(cluster, topic, 1)
        writer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        for number in range(COPIED):
            writer.produce("in", b"%d" % number, partition=0)
        assert writer.flush(60) == 0
        words = (
            *("--broker-list", cluster.bootstrap, "--input-topic", "in", "--input-partition", "0"),
            *("--output-topic", "out", "--consumer-group", "copier", "--transactional-id", "copier"),
            *("--transaction-size", "5", "--enable-random-aborts", "--use-group-metadata"),
        )
        kills = 0
        with tempfile.TemporaryFile() as words_said:
            for _ in range(10):  # a client that gives up is started again, as an operator would
                copier = subprocess.Popen(java.tool_command(COPIER, words), stdout=words_said, stderr=words_said)
                try:
                    while copier.poll() is None:
                        time.sleep(1)
                        node_id = chance.choice(cluster.node_ids)
                        cluster.kill(node_id)
                        time.sleep(1)
                        cluster.start(node_id)
                        cluster.wait_ready(60)
                        kills += 1
                finally:
                    copier.kill()
                    copier.wait()
                if copier.returncode == 0:
                    break
            words_said.seek(0)
            said = words_said.read().decode()
        assert copier.returncode == 0, said[-3000:]
        assert kills > 2
        with confluent.reading(cluster, [TopicPartition("out", 0, 0)], isolation_level="read_committed") as consumer:  # type: ignore[arg-type]
            values = [int(message.value() or b"") for message in confluent.take(consumer, COPIED)]
            assert not [one for one in consumer.consume(1, 0.5) if one.error() is None]
        assert values == list(range(COPIED))


@pytest.mark.parametrize(("first", "second"), [(TidelogNode, KafkaNode), (KafkaNode, TidelogNode)])
@pytest.mark.parametrize("name", ["v1", "v2"])
def test_an_open_transaction_is_ended_by_the_other_program(
    scratch: Path, first: type[Node], second: type[Node], name: str
) -> None:
    """One program writes the state of transactions; the other knows every id and goes on with what is open."""
    versions, topic = {"v1": V1, "v2": V2}[name], "handed-over"
    directory = scratch / "first"
    directory.mkdir()
    with first(directory, properties=PROPERTIES) as node:
        confluent.create_topic(node, topic)
        requests = Requests(Raw(node).ask, topic, lambda: time.sleep(0.05))
        identity = begin_after_others(requests, versions)
        node.stop()
        data = node.copy_data(scratch / "data")
        taken = second(
            scratch,
            properties=PROPERTIES,
            client_port=node.client_port,
            controller_port=node.controller_port,
            data_directory=data,
        )
    with taken:
        requests = Requests(Raw(taken).ask, topic, lambda: time.sleep(0.05))
        requests.until_settled(lambda: requests.add("committed", 999_999, 0)[0])  # until it has read its log
        again = requests.until_settled(lambda: requests.produce(*identity, 1, version=versions.produce, value=b"two"))
        assert again is ErrorCode.NONE
        ended = requests.until_settled(lambda: requests.end(*identity, True, version=versions.end))
        assert ended.code is ErrorCode.NONE
        assert read_committed(taken, topic, 3) == ["committed", "one", "two"]
        fresh = requests.until_settled(lambda: requests.init("committed"))
        assert (fresh.code, fresh.epoch > 0) == (ErrorCode.NONE, True), "an epoch after those given out before"


def begin_after_others(requests: Requests, versions: Versions) -> tuple[str, int, int]:
    """A committed and an aborted transaction, and one with a record in it that is left open."""
    for transactional_id, value in (("committed", "committed"), ("aborted", "aborted"), ("open", "one")):
        requests.until_settled(
            lambda one=transactional_id: ErrorCode.NONE if requests.find(one) >= 0 else ErrorCode.NOT_COORDINATOR
        )
        made = requests.until_settled(lambda one=transactional_id: requests.init(one, timeout_ms=900_000))
        identity = (transactional_id, made.producer_id, made.epoch)
        if versions is V1:
            requests.until_settled(partial(requests.add, *identity))
        action = partial(requests.produce, *identity, 0, version=versions.produce, value=value.encode())
        assert requests.until_settled(action) is ErrorCode.NONE
        if transactional_id != "open":
            end = partial(requests.end, *identity, transactional_id == "committed", version=versions.end)
            assert requests.until_settled(end).code is ErrorCode.NONE
    return identity
