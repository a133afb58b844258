"""Apache Kafka is asked for its settings: ours have the same names, defaults and scopes, or say how they differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource, NewTopic, ResourceType

from tests.support.nodes import KafkaNode
from tidelog.config import NodeConfig, Scope, Setting, TopicConfig
from tidelog.config.others import REFUSED, REFUSED_PREFIXES, TOPIC_WITHOUT_EFFECT, WITHOUT_EFFECT, has_no_effect

TOPIC = "settings"
ONLY_AT_RUN_TIME = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Kafka shows them only where they are given."""
OF_OLDER_FILES = {"leader.imbalance.per.broker.percentage"}
"""Gone from Kafka, and still in many a properties file."""
UNDOCUMENTED = {"server.max.startup.time.ms", "unstable.api.versions.enable", "unstable.feature.versions.enable"}
WITHOUT_DEFAULT_IN_KAFKA = {"node.id", "process.roles", "controller.listener.names"}
FIXED_AT_THE_START_HERE = {"listeners", "listener.security.protocol.map"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminClient]:
    with KafkaNode(tmp_path_factory.mktemp("kafka"), quick_start=False) as node:  # with no setting of the tests' own
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 3})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
        yield admin


def described(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(60)
    return found


def default_in_kafka(entry: ConfigEntry) -> str:
    """The weakest value of a broker setting; empty where it has none."""
    weakest = [each.value for each in entry.synonyms.values() if each.source == ConfigSource.DEFAULT_CONFIG.value]
    if weakest:
        return weakest[0] or ""
    return (entry.value or "") if entry.source == ConfigSource.DEFAULT_CONFIG.value else ""


def default_here(setting: Setting) -> str:
    """Kafka's default as our table has it."""
    return setting.kafka_default if setting.kafka_default is not None else setting.format(setting.default) or ""


def test_every_node_setting_is_kafkas_with_its_default_and_scope(kafka: AdminClient) -> None:
    broker = described(kafka, ResourceType.BROKER, "1")
    wrong = []
    for setting in [*NodeConfig.SETTINGS.values(), *WITHOUT_EFFECT.values()]:
        name = setting.name
        if setting.ours or setting.internal or name in ONLY_AT_RUN_TIME | OF_OLDER_FILES | UNDOCUMENTED:
            if name in broker and name not in UNDOCUMENTED:
                wrong.append(f"{name}: Kafka has it after all")
            continue
        if name not in broker:
            wrong.append(f"{name}: Kafka does not know it")
            continue
        theirs, ours = default_in_kafka(broker[name]), default_here(setting)
        if theirs != ours and name not in WITHOUT_DEFAULT_IN_KAFKA:
            wrong.append(f"{name}: the default is {theirs!r} in Kafka and {ours!r} here")
        if broker[name].is_read_only != (setting.scope is Scope.NODE) and name not in FIXED_AT_THE_START_HERE:
            wrong.append(
                f"{name}: read-only is {broker[name].is_read_only} in Kafka and the scope here {setting.scope}"
            )
    assert not wrong, "\n".join(wrong)


def test_kafka_has_no_setting_that_is_unknown_here(kafka: AdminClient) -> None:
    refused = tuple(prefix for prefix, _ in REFUSED_PREFIXES)
    unknown = [
        name
        for name in described(kafka, ResourceType.BROKER, "1")
        if name not in NodeConfig.SETTINGS
        and not has_no_effect(name)
        and name not in REFUSED
        and not name.startswith(refused)
        and name != "broker.id"
    ]
    assert unknown == []


def test_every_topic_setting_is_kafkas_with_its_default(kafka: AdminClient) -> None:
    topic = described(kafka, ResourceType.TOPIC, TOPIC)
    settings = {**TopicConfig.SETTINGS, **TOPIC_WITHOUT_EFFECT}
    assert set(topic) - set(settings) - set(REFUSED) == set()
    assert {name for name in settings if name not in topic} == {
        name for name, setting in settings.items() if setting.ours or setting.internal
    }
    here = {name: default_here(settings[name]) for name in topic if name in settings}
    assert {name: topic[name].value for name in here} == here
