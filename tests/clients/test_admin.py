"""The admin calls of confluent-kafka: topics, partitions, configs, records, offsets, the cluster."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.support.nodes import Node
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
def client(node: Node) -> AdminClient:
    """One admin client for the module."""
    return confluent.admin(node)


def refusal(future: Future[Any]) -> int:
    """The error code an admin call was refused with."""
    with pytest.raises(KafkaException) as refused:
        future.result(confluent.WAIT_S)
    code: int = refused.value.args[0].code()
    return code


def topic_config(client: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    """All settings of a topic, by name."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries: dict[str, ConfigEntry] = client.describe_configs([resource])[resource].result(confluent.WAIT_S)
    return entries


def wait_for(client: AdminClient, topic: str, name: str, *values: str) -> None:
    """Until a setting is shown with one of these values: a broker may learn a moment after its controller."""
    wait_until(lambda: topic_config(client, topic)[name].value in values, 60, f"{name} of {topic} is one of {values}")


def alter(client: AdminClient, topic: str, *changes: tuple[str, str | None, AlterConfigOpType]) -> Future[Any]:
    """Change settings of a topic; the answer is still to come."""
    entries = [ConfigEntry(name, value, incremental_operation=operation) for name, value, operation in changes]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    answer: Future[Any] = client.incremental_alter_configs([resource])[resource]
    return answer


def test_a_topic_is_made_described_and_deleted(client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=3, retention_ms="1000000")
    description = client.describe_topics(TopicCollection([topic]))[topic].result(confluent.WAIT_S)
    assert [each.id for each in description.partitions] == [0, 1, 2]
    assert {each.leader.id for each in description.partitions} == {1}
    assert all([replica.id for replica in each.isr] == [1] for each in description.partitions)
    assert not description.is_internal
    assert topic in client.list_topics(timeout=60).topics

    client.delete_topics([topic])[topic].result(confluent.WAIT_S)
    # Apache Kafka answers when its controller knows; its broker may learn a moment later.
    wait_until(lambda: topic not in client.list_topics(timeout=60).topics, 60, "the deleted topic is no longer listed")
    assert refusal(client.describe_topics(TopicCollection([topic]))[topic]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_made_again_is_a_new_topic(node: Node, client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, [Record(None, b"old", 1)])
    first = client.describe_topics(TopicCollection([topic]))[topic].result(confluent.WAIT_S)
    client.delete_topics([topic])[topic].result(confluent.WAIT_S)
    wait_until(lambda: topic not in client.list_topics(timeout=60).topics, 60, "the deleted topic is no longer listed")
    confluent.create_topic(node, topic)
    second = client.describe_topics(TopicCollection([topic]))[topic].result(confluent.WAIT_S)
    assert str(first.topic_id) != str(second.topic_id)
    confluent.produce_all(node, topic, [Record(None, b"new", 1)])
    assert [each.value() for each in confluent.consume_all(node, topic, 1)] == [b"new"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (NewTopic("bad name!", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("three-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-name", 1, 1, config={"no.such.setting": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-value", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-range", 1, 1, config={"segment.bytes": "-5"}), KafkaError.INVALID_CONFIG),
    ],
    ids=lambda value: value.topic if isinstance(value, NewTopic) else "",
)
def test_a_bad_topic_is_refused_and_not_made(client: AdminClient, request_: NewTopic, code: int) -> None:
    assert refusal(client.create_topics([request_])[request_.topic]) == code
    assert request_.topic not in client.list_topics(timeout=60).topics


def test_one_bad_topic_does_not_stop_the_others(client: AdminClient) -> None:
    answers = client.create_topics([NewTopic("good-one", 1, 1), NewTopic("bad/one", 1, 1)])
    answers["good-one"].result(confluent.WAIT_S)
    assert refusal(answers["bad/one"]) == KafkaError.TOPIC_EXCEPTION
    assert refusal(client.create_topics([NewTopic("good-one", 1, 1)])["good-one"]) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validating_makes_nothing(client: AdminClient) -> None:
    client.create_topics([NewTopic("only-asked", 4, 1)], validate_only=True)["only-asked"].result(confluent.WAIT_S)
    assert "only-asked" not in client.list_topics(timeout=60).topics


def test_deleting_an_unknown_topic_is_refused(client: AdminClient) -> None:
    assert refusal(client.delete_topics(["never-was"])["never-was"]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added_never_taken(node: Node, client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    client.create_partitions([NewPartitions(topic, 5)])[topic].result(confluent.WAIT_S)
    wait_until(lambda: len(client.list_topics(topic, timeout=60).topics[topic].partitions) == 5, 60, "five partitions")
    confluent.produce_all(node, topic, [Record(None, b"in the new one", 1)], partition=4)
    assert [each.value() for each in confluent.consume_all(node, topic, 1, partition=4)] == [b"in the new one"]
    assert refusal(client.create_partitions([NewPartitions(topic, 3)])[topic]) == KafkaError.INVALID_PARTITIONS
    assert refusal(client.create_partitions([NewPartitions("gone", 3)])["gone"]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_settings_are_shown_with_where_they_come_from(client: AdminClient, make_topic: TopicMaker) -> None:
    settings = topic_config(client, make_topic(retention_ms="3600000"))
    assert settings["retention.ms"].value == "3600000"
    assert ConfigSource(settings["retention.ms"].source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert settings["segment.bytes"].value == "1073741824"
    assert ConfigSource(settings["segment.bytes"].source) is ConfigSource.DEFAULT_CONFIG
    assert settings["cleanup.policy"].value == "delete"


def test_a_changed_setting_works_at_once(node: Node, client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    alter(client, topic, ("max.message.bytes", "5000", AlterConfigOpType.SET)).result(confluent.WAIT_S)
    wait_for(client, topic, "max.message.bytes", "5000")
    with pytest.raises(KafkaException) as refused:
        confluent.produce_all(node, topic, [Record(None, bytes(9_000), 1)])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    alter(client, topic, ("max.message.bytes", None, AlterConfigOpType.DELETE)).result(confluent.WAIT_S)
    wait_for(client, topic, "max.message.bytes", "1048588")
    confluent.produce_all(node, topic, [Record(None, bytes(9_000), 1)])
    assert ConfigSource(topic_config(client, topic)["max.message.bytes"].source) is ConfigSource.DEFAULT_CONFIG


def test_lists_are_appended_to_and_subtracted_from(client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    alter(client, topic, ("cleanup.policy", "compact", AlterConfigOpType.APPEND)).result(confluent.WAIT_S)
    wait_for(client, topic, "cleanup.policy", "compact,delete", "delete,compact")
    alter(client, topic, ("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)).result(confluent.WAIT_S)
    wait_for(client, topic, "cleanup.policy", "compact")


def test_a_bad_change_changes_nothing(client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic(retention_ms="7200000")
    change = alter(
        client,
        topic,
        ("retention.ms", "1", AlterConfigOpType.SET),
        ("segment.bytes", "many", AlterConfigOpType.SET),
    )
    assert refusal(change) == KafkaError.INVALID_CONFIG
    assert topic_config(client, topic)["retention.ms"].value == "7200000"
    unknown = alter(client, "topic-that-is-not", ("retention.ms", "1", AlterConfigOpType.SET))
    assert refusal(unknown) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_settings_of_a_broker(client: AdminClient) -> None:
    resource = ConfigResource(ResourceType.BROKER, "1")
    settings = client.describe_configs([resource])[resource].result(confluent.WAIT_S)
    assert settings["node.id"].value == "1"
    assert settings["node.id"].is_read_only
    assert settings["log.retention.hours"].value == "168"
    assert settings["auto.create.topics.enable"].value == "true"


def test_deleted_records_are_gone(node: Node, client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    confluent.produce_all(node, topic, [Record(None, b"%d" % each, 1) for each in range(100)])
    wanted = TopicPartition(topic, 0, 40)
    assert client.delete_records([wanted])[wanted].result(confluent.WAIT_S).low_watermark == 40
    with confluent.reading(node, [TopicPartition(topic, 0, OFFSET_BEGINNING)]) as consumer:
        read = confluent.take(consumer, 60)
        assert [each.offset() for each in read] == list(range(40, 100))
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 60) == (40, 100)
    with pytest.raises(KafkaException):
        confluent.consume_all(node, topic, 1, offset=10)
    beyond = TopicPartition(topic, 0, 101)
    assert refusal(client.delete_records([beyond])[beyond]) == KafkaError.OFFSET_OUT_OF_RANGE
    everything = TopicPartition(topic, 0, -1)
    assert client.delete_records([everything])[everything].result(confluent.WAIT_S).low_watermark == 100


def test_offsets_are_listed_by_every_rule(node: Node, client: AdminClient, make_topic: TopicMaker) -> None:
    topic = make_topic()
    timestamps = [1_000, 5_000, 9_000, 3_000]
    confluent.produce_all(node, topic, [Record(None, b"x", each) for each in timestamps], linger_ms=50)

    def ask(rule: OffsetSpec) -> tuple[int, int]:
        partition = TopicPartition(topic, 0)
        answer = client.list_offsets({partition: rule})[partition].result(confluent.WAIT_S)
        return answer.offset, answer.timestamp

    assert ask(OffsetSpec.earliest())[0] == 0
    assert ask(OffsetSpec.latest())[0] == 4
    assert ask(OffsetSpec.max_timestamp()) == (2, 9_000)
    assert ask(OffsetSpec.for_timestamp(4_000)) == (1, 5_000)
    assert ask(OffsetSpec.for_timestamp(10_000))[0] == -1


def test_the_cluster_describes_itself(node: Node, client: AdminClient) -> None:
    cluster = client.describe_cluster().result(confluent.WAIT_S)
    assert [(each.id, each.host, each.port) for each in cluster.nodes] == [(1, "127.0.0.1", node.client_port)]
    assert cluster.controller.id == 1
    stored = (node.data_directory / "meta.properties").read_text()
    assert f"cluster.id={cluster.cluster_id}" in stored
