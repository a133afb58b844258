"""What a decision changed, told to people: each event with its reason, and stable names for its kind and fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelog.controller.decide.decision import Decision
from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import NO_LEADER, RECOVERING, Broker, Partition
from tidelog.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from tidelog.wire.uuids import to_text

Telling = tuple[str, str, dict[str, Any]]
"""Kind, level and fields, as `Outbox.tell_fields` takes them."""

_RESOURCES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "broker"}


def tellings(image: MetadataImage, delta: ImageDelta, decision: Decision) -> Iterator[Telling]:
    """The events of one decision; `image` has it applied."""
    for name, before in delta.features.items():
        yield "feature-changed", "info", {"feature": name, "level": image.features.get(name, 0), "previous": before}
    for broker_id, known in delta.brokers.items():
        yield from _broker(image, broker_id, known, decision.broker_reasons.get(broker_id, ""))
    for controller_id in sorted(delta.controllers):
        yield "controller-registered", "info", {"controller": controller_id}
    for topic_id, topic in delta.topics_deleted.items():
        yield "topic-deleted", "info", {"topic": topic.name, "topic_id": to_text(topic_id)}
    for (kind, resource), names in delta.configs.items():
        values = image.config(kind, resource)
        fields = {"resource": _RESOURCES.get(kind, str(kind)), "name": resource}
        yield "config-changed", "info", {**fields, "changes": {name: values.get(name) for name in sorted(names)}}
    for topic_id, partitions in delta.partitions.items():
        yield from _topic(image, delta, topic_id, partitions, decision)


def _broker(image: MetadataImage, broker_id: int, before: Broker | None, reason: str) -> Iterator[Telling]:
    after = image.brokers.get(broker_id)
    fields = {"broker": broker_id, "reason": reason}
    if after is None:
        yield "broker-unregistered", "info", fields
        return
    fields["epoch"] = after.epoch
    if before is None or before.incarnation_id != after.incarnation_id:
        yield "broker-registered", "info", fields
        return
    gone = [to_text(each) for each in before.log_dirs if each not in after.log_dirs]
    if gone:
        yield "broker-directories-offline", "warning", {**fields, "directories": gone}
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        yield "broker-stopping", "info", fields
    if after.fenced and not before.fenced:
        yield "broker-fenced", "warning", fields
    elif before.fenced and not after.fenced:
        yield "broker-unfenced", "info", fields


def _topic(
    image: MetadataImage,
    delta: ImageDelta,
    topic_id: bytes,
    partitions: dict[int, Partition | None],
    decision: Decision,
) -> Iterator[Telling]:
    topic = image.topics[topic_id]
    added = [partition_id for partition_id, before in partitions.items() if before is None]
    fields: dict[str, Any] = {"topic": topic.name, "topic_id": to_text(topic_id), "partitions": len(topic.partitions)}
    if topic_id in delta.topics_created:
        first = topic.partitions.get(0)
        fields["replication_factor"] = len(first.replicas) if first is not None else 0
        yield "topic-created", "info", fields
    elif added:
        yield "partitions-added", "info", {**fields, "added": len(added)}
    for partition_id, before in partitions.items():
        if before is not None:
            reason = decision.partition_reasons.get((topic_id, partition_id), "")
            place = {"topic": topic.name, "partition": partition_id}
            yield from _partition(place, before, topic.partitions[partition_id], reason)


def _partition(place: dict[str, Any], before: Partition, after: Partition, reason: str) -> Iterator[Telling]:
    state = {
        **place,
        "leader": after.leader,
        "leader_epoch": after.leader_epoch,
        "partition_epoch": after.partition_epoch,
        "isr": list(after.isr),
    }
    if after.leader_epoch != before.leader_epoch and after.leader != before.leader:
        fields = {**state, "previous_leader": before.leader, "reason": reason}
        if after.leader == NO_LEADER:
            yield "leader-lost", "warning", {**fields, "elr": list(after.eligible_leader_replicas)}
        else:
            # A reassignment ends with leaders that joined the ISR in the same change: that alone is not unclean.
            unclean = after.leader_recovery_state == RECOVERING and (
                before.leader_recovery_state != RECOVERING
                or after.leader not in (*before.isr, *before.eligible_leader_replicas)
            )
            yield "leader-elected", "warning" if unclean else "info", {**fields, "unclean": unclean}
    if set(after.isr) != set(before.isr) or after.eligible_leader_replicas != before.eligible_leader_replicas:
        yield (
            "isr-changed",
            "info",
            {
                **state,
                "previous_isr": list(before.isr),
                "joined": sorted(set(after.isr) - set(before.isr)),
                "left": sorted(set(before.isr) - set(after.isr)),
                "elr": list(after.eligible_leader_replicas),
                "reason": reason,
            },
        )
    if before.is_reassigning != after.is_reassigning or (
        after.is_reassigning and set(before.adding_replicas) != set(after.adding_replicas)
    ):
        yield from _reassignment(place, before, after)
    elif before.replicas != after.replicas:
        yield "reassignment-completed", "info", {**place, "replicas": list(after.replicas)}


def _reassignment(place: dict[str, Any], before: Partition, after: Partition) -> Iterator[Telling]:
    fields = {**place, "replicas": list(after.replicas)}
    if after.is_reassigning:
        moves = {"adding": list(after.adding_replicas), "removing": list(after.removing_replicas)}
        yield "reassignment-started", "info", {**fields, **moves}
    elif any(replica not in after.replicas for replica in before.adding_replicas):
        yield "reassignment-cancelled", "info", fields
    else:
        yield "reassignment-completed", "info", fields
