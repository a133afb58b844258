"""Settings as DescribeConfigs shows them: the value in force, where it comes from, and what else was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from tidelog.config.group import GroupConfig
from tidelog.config.node import NodeConfig
from tidelog.config.others import WITHOUT_EFFECT, explained
from tidelog.config.setting import Kind, Scope, Setting
from tidelog.config.topic import TopicConfig, in_milliseconds


class ConfigSource(IntEnum):
    """Who gave a value, numbered as DescribeConfigs numbers it."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """One name and source a value could come from."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of a topic or a broker as a client is told of it."""

    name: str
    value: str | None
    """None for a setting that is not set, and for a secret."""
    source: ConfigSource
    read_only: bool
    sensitive: bool
    kind: Kind
    synonyms: tuple[Synonym, ...]
    """Every value given for it, the one in force first, Kafka's default last."""
    doc: str


class BrokerValues(NamedTuple):
    """What a broker was given, which is also the default of topics and groups."""

    static: NodeConfig
    """Its properties file."""
    own: Mapping[str, str]
    """At run time, for it alone."""
    cluster: Mapping[str, str]
    """At run time, for all brokers."""


def describe_topic(
    overrides: Mapping[str, str], broker: BrokerValues, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a topic. `names` picks some; names that are no setting are passed over, as Kafka does."""
    settings = {
        name: setting
        for name, setting in TopicConfig.SETTINGS.items()
        if not setting.internal or setting.name in overrides
    }
    return _describe_overridden(settings, overrides, ConfigSource.DYNAMIC_TOPIC_CONFIG, broker, names)


def describe_group(
    overrides: Mapping[str, str], broker: BrokerValues, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a consumer group, whether there is one of that name or not."""
    return _describe_overridden(GroupConfig.SETTINGS, overrides, ConfigSource.DYNAMIC_GROUP_CONFIG, broker, names)


def describe_node(broker: BrokerValues, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """The settings of a broker; what is fixed at the start is read-only."""
    return [
        _entry(setting, _broker_synonyms(setting, broker), read_only=setting.scope is Scope.NODE)
        for setting in _chosen({**NodeConfig.SETTINGS, **WITHOUT_EFFECT}, names)
    ]


def describe_cluster_defaults(
    cluster_overrides: Mapping[str, str], names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """The run-time settings of all brokers (the resource with the empty name): only those that are given."""
    entries = []
    for setting in _chosen({**NodeConfig.SETTINGS, **WITHOUT_EFFECT}, names):
        if setting.name in cluster_overrides:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            given = [Synonym(setting.name, cluster_overrides[setting.name], source)]
            entries.append(_entry(setting, given, read_only=False))
    return entries


def _chosen(settings: Mapping[str, Setting], names: Iterable[str] | None) -> list[Setting]:
    if names is None:
        return [settings[name] for name in sorted(settings)]
    return [settings[name] for name in names if name in settings]


def _describe_overridden(
    settings: Mapping[str, Setting],
    overrides: Mapping[str, str],
    source: ConfigSource,
    broker: BrokerValues,
    names: Iterable[str] | None,
) -> list[ConfigEntry]:
    """Settings that may be given at run time to one topic or group, and come from the broker where they are not."""
    entries = []
    for setting in _chosen(settings, names):
        given: list[Synonym] = []
        if setting.name in overrides:
            given.append(Synonym(setting.name, overrides[setting.name], source))
        for name in setting.synonyms:
            given += _broker_synonyms(NodeConfig.SETTINGS[name], broker)
        entries.append(_entry(setting, given, read_only=False))
    return entries


def _broker_synonyms(setting: Setting, broker: BrokerValues) -> list[Synonym]:
    """Who gives a broker setting a value, the strongest first."""
    name = setting.name
    found = []
    if name in broker.own:
        found.append(Synonym(name, broker.own[name], ConfigSource.DYNAMIC_BROKER_CONFIG))
    if name in broker.cluster:
        found.append(Synonym(name, broker.cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    if name in broker.static.given:
        found.append(Synonym(name, broker.static.given[name].strip(), ConfigSource.STATIC_BROKER_CONFIG))
    if setting.default is not None:
        found.append(Synonym(name, setting.format(setting.default), ConfigSource.DEFAULT_CONFIG))
    return found


def _entry(setting: Setting, given: list[Synonym], *, read_only: bool) -> ConfigEntry:
    if given:
        first = given[0]
        value, source = _in_unit_of(setting, first), first.source
    else:
        value, source = setting.format(setting.default), ConfigSource.DEFAULT_CONFIG
    if setting.sensitive:
        value, given = None, [synonym._replace(value=None) for synonym in given]
    return ConfigEntry(
        setting.name, value, source, read_only, setting.sensitive, setting.kind, tuple(given), explained(setting)
    )


def _in_unit_of(setting: Setting, synonym: Synonym) -> str | None:
    """A synonym's value as the setting would write it: 168 hours are 604800000 milliseconds."""
    if synonym.value is None or synonym.name == setting.name:
        return synonym.value
    other = NodeConfig.SETTINGS[synonym.name]
    return setting.format(in_milliseconds(synonym.name, other.parse(synonym.value)))
