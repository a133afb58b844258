"""Apache Kafka's own consumer, kafka-consumer-groups and DumpLogSegments on groups of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.clients import confluent
from tests.clients.samples import Record
from tests.interop import toolbox
from tests.support import java
from tests.support.nodes import TidelogNode, passing_node

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPIC = "orders"


@pytest.fixture(scope="module")
def node() -> Iterator[TidelogNode]:
    properties = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    with passing_node(TidelogNode, properties) as started:
        confluent.create_topic(started, TOPIC, 2)
        for partition in range(2):
            confluent.produce_all(started, TOPIC, [Record(None, b"%d" % n, 1) for n in range(5)], partition=partition)
        yield started


def consume(node: TidelogNode, group: str, protocol: str) -> list[str]:
    out = java.run_tool(
        CONSUMER,
        *("--bootstrap-server", node.bootstrap, "--topic", TOPIC, "--group", group, "--from-beginning"),
        *("--max-messages", "10", "--timeout-ms", "60000"),
        *("--command-property", f"group.protocol={protocol}"),
    )
    return sorted(line for line in out.splitlines() if line.isdigit())


def groups(node: TidelogNode, *words: str) -> str:
    return toolbox.shared().run(GROUPS, "--bootstrap-server", node.bootstrap, *words)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_consumer_and_its_tools(node: TidelogNode, protocol: str) -> None:
    group = f"java-{protocol}"
    assert consume(node, group, protocol) == sorted(str(number) for number in range(5) for _ in range(2))
    assert group in groups(node, "--list").split()
    described = groups(node, "--describe", "--group", group)
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert sorted((row[1], row[2], row[3], row[4], row[5]) for row in rows) == [
        (TOPIC, "0", "5", "5", "0"),
        (TOPIC, "1", "5", "5", "0"),
    ]
    assert "Empty" in groups(node, "--describe", "--group", group, "--state")
    reset = ("--reset-offsets", "--group", group, "--topic", TOPIC, "--to-offset", "2")
    groups(node, *reset, "--execute")
    described = groups(node, "--describe", "--group", group)
    assert {line.split()[3] for line in described.splitlines() if line.startswith(group)} == {"2"}
    groups(node, "--delete-offsets", "--group", group, "--topic", f"{TOPIC}:0")
    described = groups(node, "--describe", "--group", group)
    assert [line.split()[2] for line in described.splitlines() if line.startswith(group)] == ["1"]
    assert "successful" in groups(node, "--delete", "--group", group)
    assert group not in groups(node, "--list").split()


def test_the_offsets_decoder_reads_every_record(node: TidelogNode) -> None:
    consume(node, "dumped-classic", "classic")
    consume(node, "dumped-consumer", "consumer")
    (segment,) = (node.data_directory / "__consumer_offsets-0").glob("*.log")
    dumped = toolbox.shared().run(DUMP, "--offsets-decoder", "--files", str(segment))
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', dumped))
    assert {"1", "2", "3", "5", "6", "7", "8"} <= kinds, sorted(kinds)
    assert "unknown" not in dumped.lower()
    assert '"group":"dumped-classic"' in dumped
    assert "isvalid: true" in dumped
    assert "isvalid: false" not in dumped


def test_kafka_configs_sets_what_one_group_is_given(node: TidelogNode) -> None:
    def configs(*words: str, expect_failure: bool = False) -> str:
        where = ("--bootstrap-server", node.bootstrap, "--entity-type", "groups", "--entity-name", "special")
        return toolbox.shared().run("kafka.admin.ConfigCommand", *where, *words, expect_failure=expect_failure)

    assert "Completed updating" in configs("--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in configs("--describe")
    said = configs("--alter", "--add-config", "consumer.session.timeout.ms=1", expect_failure=True)
    assert "group.consumer.min.session.timeout.ms" in said
    configs("--alter", "--delete-config", "consumer.session.timeout.ms")
    assert "consumer.session.timeout.ms=50000" not in configs("--describe")
