"""The Java client's command-line tools, as an operator of Kafka uses them every day, against a running node."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator

import pytest

from tests.clients import confluent
from tests.clients.samples import Record
from tests.interop import toolbox
from tests.support import java
from tests.support.nodes import Node, passing_node, peer_under_test

TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """One node for all tools."""
    with passing_node(peer_under_test()) as started:
        yield started


def topics(node: Node, *arguments: str, expect_failure: bool = False) -> str:
    """kafka-topics."""
    return toolbox.shared().run(
        f"{TOOLS}.TopicCommand", "--bootstrap-server", node.bootstrap, *arguments, expect_failure=expect_failure
    )


def configs(node: Node, *arguments: str, expect_failure: bool = False) -> str:
    """kafka-configs."""
    return toolbox.shared().run(
        "kafka.admin.ConfigCommand", "--bootstrap-server", node.bootstrap, *arguments, expect_failure=expect_failure
    )


def test_kafka_topics(node: Node) -> None:
    named = ("--topic", "from-java")
    made = topics(node, "--create", *named, "--partitions", "3", "--config", "retention.ms=777000")
    assert "Created topic from-java" in made
    assert "already exists" in topics(node, "--create", *named, expect_failure=True)
    described = topics(node, "--describe", *named)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1", described)
    assert "retention.ms=777000" in described
    assert len(re.findall(r"Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3
    topics(node, "--alter", *named, "--partitions", "5")
    assert len(re.findall(r"Leader: 1", topics(node, "--describe", *named))) == 5
    assert "from-java" in topics(node, "--list").splitlines()
    assert topics(node, "--describe", "--unavailable-partitions").strip() == ""
    topics(node, "--delete", *named)
    assert "from-java" not in topics(node, "--list").splitlines()


def test_kafka_configs(node: Node) -> None:
    confluent.create_topic(node, "configured", 1, {"retention.ms": "1000000"})
    named = ("--entity-type", "topics", "--entity-name", "configured")
    configs(node, "--alter", *named, "--add-config", "max.message.bytes=40000,cleanup.policy=[compact,delete]")
    shown = configs(node, "--describe", *named)
    assert "max.message.bytes=40000" in shown
    assert "cleanup.policy=compact,delete" in shown
    configs(node, "--alter", *named, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in configs(node, "--describe", *named)
    everything = configs(node, "--describe", "--all", *named)
    assert "segment.bytes=1073741824" in everything
    assert "DEFAULT_CONFIG" in everything
    wrong = configs(node, "--alter", *named, "--add-config", "retention.ms=soon", expect_failure=True)
    assert "retention.ms" in wrong
    broker = configs(node, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "node.id=1" in broker
    configs(node, "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=5000000")
    assert "log.retention.ms=5000000" in configs(node, "--describe", "--entity-type", "brokers", "--entity-default")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(node: Node, codec: str) -> None:
    topic = f"console-{codec}"
    confluent.create_topic(node, topic, 2)
    lines = [f"h1:v{number},h2:w\tkey-{number}\tvalue {number}" for number in range(200)]
    java.run_tool(
        f"{TOOLS}.ConsoleProducer",
        *("--bootstrap-server", node.bootstrap, "--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        standard_input="".join(f"{line}\n" for line in lines),
    )
    read: list[str] = []
    with confluent.reading(node, []) as consumer:
        counts = [consumer.get_watermark_offsets(confluent.TopicPartition(topic, each), 60)[1] for each in range(2)]
    for partition, count in enumerate(counts):
        said = java.run_tool(
            f"{TOOLS}.consumer.ConsoleConsumer",
            *("--bootstrap-server", node.bootstrap, "--topic", topic, "--partition", str(partition)),
            *("--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "60000"),
            *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        )
        read += [line for line in said.splitlines() if line.startswith("h1:")]
    assert sorted(read) == sorted(lines)


def test_producer_performance(node: Node) -> None:
    confluent.create_topic(node, "performance", 3)
    said = toolbox.shared().run(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", "performance", "--num-records", "30000", "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={node.bootstrap}", "acks=all", "compression.type=lz4"),
    )
    assert "30000 records sent" in said
    listed = toolbox.shared().run(
        f"{TOOLS}.GetOffsetShell", "--bootstrap-server", node.bootstrap, "--topic", "performance"
    )
    ends = dict(line.rsplit(":", 1) for line in listed.splitlines() if line.startswith("performance:"))
    assert sum(map(int, ends.values())) == 30_000


def test_get_offsets(node: Node) -> None:
    confluent.create_topic(node, "offsets", 1)
    confluent.produce_all(node, "offsets", [Record(None, b"x", 1_000 + 10 * each) for each in range(50)])

    def ask(time_: str) -> str:
        said = toolbox.shared().run(
            f"{TOOLS}.GetOffsetShell",
            *("--bootstrap-server", node.bootstrap, "--topic", "offsets", "--time", time_),
        )
        return said.strip().splitlines()[-1]

    assert ask("latest") == "offsets:0:50"
    assert ask("earliest") == "offsets:0:0"
    assert ask("max-timestamp") == "offsets:0:49"
    assert ask("1205") == "offsets:0:21"


def test_log_dirs(node: Node) -> None:
    confluent.create_topic(node, "on-disk", 2)
    confluent.produce_all(node, "on-disk", [Record(None, bytes(5_000), 1)])
    said = toolbox.shared().run(
        f"{TOOLS}.LogDirsCommand",
        *("--bootstrap-server", node.bootstrap, "--describe", "--topic-list", "on-disk"),
    )
    (answer,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    ((directory,),) = [each["logDirs"] for each in answer["brokers"]]
    assert directory["error"] is None
    assert directory["logDir"] == str(node.data_directory)
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert sizes["on-disk-0"] > 5_000
    assert sizes["on-disk-1"] == 0


def test_delete_records(node: Node) -> None:
    confluent.create_topic(node, "shortened", 1, {"retention.ms": "-1"})
    confluent.produce_all(node, "shortened", [Record(None, b"%d" % each, 1) for each in range(100)])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as wanted:
        json.dump({"version": 1, "partitions": [{"topic": "shortened", "partition": 0, "offset": 60}]}, wanted)
        wanted.flush()
        said = toolbox.shared().run(
            f"{TOOLS}.DeleteRecordsCommand",
            *("--bootstrap-server", node.bootstrap, "--offset-json-file", wanted.name),
        )
    assert re.search(r"shortened-0\s+low_watermark: 60", said)
    assert [each.value() for each in confluent.consume_all(node, "shortened", 40, offset=60)] == [
        b"%d" % each for each in range(60, 100)
    ]


def test_the_cluster(node: Node) -> None:
    server = ("--bootstrap-server", node.bootstrap)
    said = toolbox.shared().run(f"{TOOLS}.ClusterTool", "cluster-id", *server)
    stored = (node.data_directory / "meta.properties").read_text()
    assert said.strip().rsplit(" ", 1)[1] in stored
    endpoints = toolbox.shared().run(f"{TOOLS}.ClusterTool", "list-endpoints", *server)
    assert re.search(rf"1\s+127\.0\.0\.1\s+{node.client_port}", endpoints)
    versions = toolbox.shared().run(f"{TOOLS}.BrokerApiVersionsCommand", *server)
    assert f"127.0.0.1:{node.client_port} (id: 1 rack: null isFenced: false)" in versions
    assert re.search(r"Produce\(0\): \d+ to 1\d \[usable: 1\d\]", versions)
    features = toolbox.shared().run(f"{TOOLS}.FeatureCommand", *server, "describe")
    assert re.search(r"metadata\.version.*FinalizedVersionLevel: 4\.", features)
