"""DescribeConfigs, versions 1 to 4: settings of topics, brokers and groups with their sources (KIP-226, KIP-569)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.config import (
    BrokerValues,
    ConfigEntry,
    describe_cluster_defaults,
    describe_group,
    describe_node,
    describe_topic,
)
from tidelog.controller.image import GROUP_RESOURCE
from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_CONFIGS
VERSIONS = (1, 4)
TOPIC, BROKER = 2, 4


def handle(node: Node, request: Request) -> DescribeConfigsResponse:
    """Each resource by itself."""
    response = DescribeConfigsResponse()
    for resource in request.body.resources:
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        result.error_message = None
        try:
            result.configs = [_entry(one, request.body) for one in _describe(node, resource)]
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        response.results.append(result)
    return response


def _describe(node: Node, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
    names = resource.configuration_keys
    if resource.resource_type == TOPIC:
        if resource.resource_name not in node.image.topic_ids:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {resource.resource_name!r}")
        overrides = node.broker.topic_overrides(resource.resource_name)
        return describe_topic(overrides, _values(node), names)
    if resource.resource_type == BROKER:
        if resource.resource_name == "":
            return describe_cluster_defaults(node.broker.cluster_overrides, names)
        if resource.resource_name != str(node.node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"this is broker {node.node_id}, not {resource.resource_name!r}: ask that one",
            )
        return describe_node(_values(node), names)
    if resource.resource_type == GROUP_RESOURCE:
        if not resource.resource_name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        overrides = node.image.config(GROUP_RESOURCE, resource.resource_name)
        return describe_group(overrides, _values(node), names)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings here")


def _values(node: Node) -> BrokerValues:
    return BrokerValues(node.broker.static_config, node.broker.broker_overrides, node.broker.cluster_overrides)


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.kind,
        documentation=entry.doc if request.include_documentation else None,
        synonyms=[DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source) for one in synonyms],
    )
