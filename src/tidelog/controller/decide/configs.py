"""IncrementalAlterConfigs 0-1 (KIP-339) and AlterConfigs 0-2: settings of topics, brokers, all brokers, and groups.

One resource changes as a whole or not at all. With eligible leader replicas, min.insync.replicas has more rules, as in
Kafka: no broker has one of its own, the cluster's cannot be removed, and changing one forgets the ELRs that rest on it.
Those stay, though, where too few are in sync by the new setting as well: nothing was committed there since, nothing is
before the ISR grows, and when the last one in sync is gone, only they have what is committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidelog.config import (
    Kind,
    NodeConfig,
    TopicConfig,
    validate_group_overrides,
    validate_node_overrides,
    validate_topic_overrides,
)
from tidelog.controller import levels
from tidelog.controller.decide.create_topics import MAX_CONFIG_LENGTH
from tidelog.controller.decide.decision import MIN_INSYNC_REPLICAS, Context, Decision, min_insync_replicas
from tidelog.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from tidelog.controller.records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.messages import alter_configs, incremental_alter_configs

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

Resource = tuple[int, str]
Changes = dict[str, str | None]
"""By name; None takes the setting away."""
Changed = dict[Resource, dict[str, str]]
"""All settings of the resources that a request has changed so far, as they will be."""


def decide_incremental(
    image: MetadataImage, request: incremental_alter_configs.IncrementalAlterConfigsRequest, context: Context
) -> Decision:
    """Change single settings."""
    decision = Decision(incremental_alter_configs.IncrementalAlterConfigsResponse())
    counts = Counter((each.resource_type, each.resource_name) for each in request.resources)
    changed: Changed = {}
    for each in request.resources:
        resource = (each.resource_type, each.resource_name)
        code, message = ErrorCode.NONE, None
        try:
            _check_resource(image, resource, counts[resource])
            changes = _incremental_changes(image, resource, each.configs, context)
            _change(image, decision, resource, changes, context, changed)
        except KafkaError as error:
            code, message = error.code, error.message or None
        decision.response.responses.append(
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
        )
    return _finish(decision, request.validate_only)


def decide_legacy(image: MetadataImage, request: alter_configs.AlterConfigsRequest, context: Context) -> Decision:
    """Replace all settings of each resource by those given."""
    decision = Decision(alter_configs.AlterConfigsResponse())
    counts = Counter((each.resource_type, each.resource_name) for each in request.resources)
    changed: Changed = {}
    for each in request.resources:
        resource = (each.resource_type, each.resource_name)
        code, message = ErrorCode.NONE, None
        try:
            _check_resource(image, resource, counts[resource])
            changes: Changes = {config.name: config.value for config in each.configs}
            if any(value is None for value in changes.values()):
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Null value not supported for: " + ",".join(changes))
            for name in image.config(*resource):
                changes.setdefault(name, None)
            _change(image, decision, resource, changes, context, changed)
        except KafkaError as error:
            code, message = error.code, error.message or None
        decision.response.responses.append(
            alter_configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
        )
    return _finish(decision, request.validate_only)


def _finish(decision: Decision, validate_only: bool) -> Decision:
    if validate_only:
        decision.records.clear()
    decision.limit()
    return decision


def _check_resource(image: MetadataImage, resource: Resource, times: int) -> None:
    kind, name = resource
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if kind == TOPIC_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if name not in image.topic_ids:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == BROKER_RESOURCE:
        if name and not (name.isascii() and name.isdecimal()):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unable to parse broker name '{name}' as a base 10 number.")
        if name and int(name) not in image.brokers and int(name) not in image.controllers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
    elif kind == BROKER_LOGGER_RESOURCE:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Log levels are not kept in the metadata; set them where the node is started."
        )
    elif kind == GROUP_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    elif kind == CLIENT_METRICS_RESOURCE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Settings of resource type {kind} are not served.")
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}.")


def _incremental_changes(
    image: MetadataImage, resource: Resource, configs: list[incremental_alter_configs.AlterableConfig], context: Context
) -> Changes:
    changes: Changes = {}
    current = image.config(*resource)
    for config in configs:
        if config.name in changes:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys: " + config.name)
        if config.config_operation == DELETE:
            changes[config.name] = None
            continue
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}")
        if config.config_operation == SET:
            changes[config.name] = config.value
        elif config.config_operation in (APPEND, SUBTRACT):
            changes[config.name] = _edited_list(resource, current, config, context)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {config.config_operation}.")
    return changes


def _edited_list(
    resource: Resource, current: Mapping[str, str], config: incremental_alter_configs.AlterableConfig, context: Context
) -> str:
    schema = TopicConfig.SETTINGS if resource[0] == TOPIC_RESOURCE else NodeConfig.SETTINGS
    setting = schema.get(config.name)
    if setting is None or setting.kind is not Kind.LIST:
        verb = "APPEND" if config.config_operation == APPEND else "SUBTRACT"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {config.name} because its type is not LIST.")
    text = current.get(config.name)
    if text is None:
        text = setting.format(setting.default) or ""
    entries = [entry for entry in text.split(",") if entry]
    for entry in (config.value or "").split(","):
        if config.config_operation == APPEND and entry not in entries:
            entries.append(entry)
        elif config.config_operation == SUBTRACT and entry in entries:
            entries.remove(entry)
    return ",".join(entries)


def _change(
    image: MetadataImage,
    decision: Decision,
    resource: Resource,
    changes: Changes,
    context: Context,
    changed: Changed,
) -> None:
    kind, resource_name = resource
    current = image.config(*resource)
    wanted = dict(current)
    for name, value in changes.items():
        if value is None:
            wanted.pop(name, None)
        elif len(value) > MAX_CONFIG_LENGTH:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"The configuration value cannot be longer than {MAX_CONFIG_LENGTH} characters.",
            )
        else:
            wanted[name] = value
    if image.elr_enabled and kind == BROKER_RESOURCE:
        _check_min_insync_replicas(resource_name, current, changes)
    # Only what this request sets is judged: an odd setting from an old log must not stand in the way of another.
    given = {name: value for name, value in changes.items() if value is not None}
    try:
        if kind == GROUP_RESOURCE:
            validate_group_overrides(given, context.config)
            validate_group_overrides(wanted, context.config)
        elif kind == BROKER_RESOURCE:
            validate_node_overrides(given)
        else:
            validate_topic_overrides(given)
            known = {name: value for name, value in wanted.items() if name in TopicConfig.SETTINGS}
            validate_topic_overrides(known)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    for name, value in changes.items():
        # KAFKA-14136: a broker's setting is written again although it has that value, which makes it read files anew.
        if value != current.get(name) or (kind == BROKER_RESOURCE and value is not None):
            decision.add(ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=value))
    changed[resource] = wanted
    if wanted.get(MIN_INSYNC_REPLICAS) != current.get(MIN_INSYNC_REPLICAS) and image.elr_enabled:
        _clear_eligible(image, decision, resource_name if kind == TOPIC_RESOURCE else "", context, changed)


def _clear_eligible(
    image: MetadataImage, decision: Decision, topic_name: str, context: Context, changed: Changed
) -> None:
    """Forget the ELRs of a topic, or of all, but for those that the settings as they will be leave right."""
    decision.add(ClearElrRecord(topic_name=topic_name))
    for topic, partition_id, partition in image.partitions():
        if topic_name not in ("", topic.name) or not (partition.eligible_leader_replicas or partition.last_known_elr):
            continue
        if len(partition.isr) < min_insync_replicas(image, context, topic.name, len(partition.replicas), changed):
            kept = PartitionChangeRecord(
                topic_id=topic.topic_id,
                partition_id=partition_id,
                eligible_leader_replicas=list(partition.eligible_leader_replicas),
                last_known_elr=list(partition.last_known_elr),
            )
            decision.add(kept, levels.partition_version(image.metadata_version))


def _check_min_insync_replicas(resource_name: str, current: Mapping[str, str], changes: Changes) -> None:
    if MIN_INSYNC_REPLICAS not in changes:
        return
    value = changes[MIN_INSYNC_REPLICAS]
    if resource_name and value is not None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if not resource_name and value is None and MIN_INSYNC_REPLICAS in current:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )
