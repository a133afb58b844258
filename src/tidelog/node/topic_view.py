"""Topics as clients are shown them: leaders they can reach, replicas that are offline, which topics are internal."""

from __future__ import annotations

from tidelog.controller.entities import Partition
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode

INTERNAL_TOPICS = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state", "__replication_events")
)


def is_internal_topic(name: str) -> bool:
    """Whether the cluster itself owns the topic."""
    return name in INTERNAL_TOPICS


def visible_leader(image: MetadataImage, partition: Partition, listener: str) -> tuple[int, ErrorCode]:
    """The leader, when clients of this listener can reach it; otherwise -1 and why."""
    broker = image.brokers.get(partition.leader)
    if broker is None or broker.fenced:
        return -1, ErrorCode.LEADER_NOT_AVAILABLE
    if broker.endpoint(listener) is None:
        return -1, ErrorCode.LISTENER_NOT_FOUND
    return partition.leader, ErrorCode.NONE


def offline_replicas(image: MetadataImage, partition: Partition, listener: str) -> list[int]:
    """Replicas whose broker is away, or whose directory is."""
    offline = []
    for broker_id in partition.replicas:
        broker = image.brokers.get(broker_id)
        if (
            broker is None
            or broker.fenced
            or broker.endpoint(listener) is None
            or not broker.has_online(partition.directory_of(broker_id))
        ):
            offline.append(broker_id)
    return offline
