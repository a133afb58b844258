"""Every setting, once: Kafka's name, type, default, range, scope and one sentence. docs/settings.md is made from it.

NodeConfig.from_properties(parse_properties(text))            a node's properties file
TopicConfig.from_overrides(overrides, node, dynamic)          what is in force for a topic
validate_topic_overrides(overrides)                           at the door, before anything is applied
validate_node_overrides(overrides)                            the same for run-time settings of brokers
describe_topic(overrides, broker), describe_node(broker), …   what DescribeConfigs answers
"""

from __future__ import annotations

from tidelog.config.describe import (
    BrokerValues,
    ConfigEntry,
    ConfigSource,
    Synonym,
    describe_cluster_defaults,
    describe_group,
    describe_node,
    describe_topic,
)
from tidelog.config.group import GroupConfig, validate_group_overrides
from tidelog.config.listeners import Listener, Voter
from tidelog.config.node import NodeConfig, parse_connection_overrides, validate_node_overrides
from tidelog.config.properties import format_properties, parse_properties
from tidelog.config.setting import Kind, Scope, Setting
from tidelog.config.topic import TopicConfig, validate_topic_overrides

__all__ = [
    "BrokerValues",
    "ConfigEntry",
    "ConfigSource",
    "GroupConfig",
    "Kind",
    "Listener",
    "NodeConfig",
    "Scope",
    "Setting",
    "Synonym",
    "TopicConfig",
    "Voter",
    "describe_cluster_defaults",
    "describe_group",
    "describe_node",
    "describe_topic",
    "format_properties",
    "parse_connection_overrides",
    "parse_properties",
    "validate_group_overrides",
    "validate_node_overrides",
    "validate_topic_overrides",
]
