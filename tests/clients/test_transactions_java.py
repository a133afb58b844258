"""Transactions of the Java client that Spark brings along, judged with confluent-kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.clients.test_transactions import NODE_PROPERTIES as PROPERTIES
from tests.clients.test_transactions import read_committed
from tests.support import java
from tests.support.nodes import Node
from tools import fetch_spark_connector

NODE_PROPERTIES = PROPERTIES
STRINGS = "org.apache.kafka.common.serialization.String"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A Java with Kafka's client."""
    connector = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    jars = [*connector, Path(pyspark.__file__).parent / "jars" / "*"]
    port, token, process = launch_gateway(
        classpath=":".join(map(str, jars)),
        javaopts=[*java.QUICK_START, "-Xmx256m", "-Dlog4j2.level=OFF"],
        java_path=java.java_executable(),
        die_on_exit=True,
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    with java.plain_errors():
        yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait(60)


def settings(jvm: Any, node: Node, **more: str) -> Any:
    found = jvm.java.util.Properties()
    for name, value in {"bootstrap_servers": node.bootstrap, **more}.items():
        found.setProperty(name.replace("_", "."), value)
    return found


def producer(jvm: Any, node: Node, transactional_id: str) -> Any:
    made = jvm.org.apache.kafka.clients.producer.KafkaProducer(
        settings(
            jvm,
            node,
            transactional_id=transactional_id,
            key_serializer=f"{STRINGS}Serializer",
            value_serializer=f"{STRINGS}Serializer",
        )
    )
    made.initTransactions()
    return made


def test_the_java_client_copies_with_its_offsets(node: Node, make_topic: TopicMaker, jvm: Any) -> None:
    source, target = make_topic(), make_topic()
    confluent.produce_all(node, source, [Record(None, b"%d" % number, 1) for number in range(10)])
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        settings(
            jvm,
            node,
            group_id=source,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit="false",
            key_deserializer=f"{STRINGS}Deserializer",
            value_deserializer=f"{STRINGS}Deserializer",
        )
    )
    writer = producer(jvm, node, source)
    try:
        consumer.subscribe([source])
        values: list[str] = []
        while len(values) < 10:
            records = consumer.poll(jvm.java.time.Duration.ofMillis(500)).iterator()
            while records.hasNext():
                values.append(records.next().value())
        partition = jvm.org.apache.kafka.common.TopicPartition(source, 0)
        offsets = {partition: jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(10)}
        for end in ("abort", "commit"):
            writer.beginTransaction()
            for value in values:
                writer.send(jvm.org.apache.kafka.clients.producer.ProducerRecord(target, f"{end} {value}"))
            writer.sendOffsetsToTransaction(offsets, consumer.groupMetadata())
            if end == "abort":
                writer.abortTransaction()
                assert consumer.committed({partition}).get(partition) is None
            else:
                writer.commitTransaction()
                assert consumer.committed({partition}).get(partition).offset() == 10
    finally:
        consumer.close()
        writer.close()
    assert read_committed(node, target, 10) == [f"commit {number}" for number in range(10)]


def test_the_java_client_is_fenced(node: Node, make_topic: TopicMaker, jvm: Any) -> None:
    topic = make_topic()
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord
    zombie = producer(jvm, node, topic)
    zombie.beginTransaction()
    zombie.send(record(topic, "left open")).get()
    successor = producer(jvm, node, topic)
    successor.beginTransaction()
    successor.send(record(topic, "good")).get()
    successor.commitTransaction()
    with pytest.raises(Py4JJavaError, match="ProducerFencedException"):
        zombie.commitTransaction()
    zombie.close()
    successor.close()
    assert read_committed(node, topic, 1) == ["good"]
