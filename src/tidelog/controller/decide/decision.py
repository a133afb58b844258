"""What a decision is, and what it may know besides the image and the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller.entities import UNASSIGNED_DIRECTORY, Broker, Partition, Topic
from tidelog.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from tidelog.controller.records import Record, VersionedRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Chance

MAX_RECORDS_PER_REQUEST = 10_000
"""What one request may change, as in Kafka: the records of a decision are written as one batch."""

MAX_ELECTIONS_PER_ROUND = 1_000
"""Elections of one periodic round; the rest follows in the next."""

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


class Decision:
    """Records to write, and the answer to give once they are committed.

    `partition_reasons` and `broker_reasons` say why, for people; they are no part of the state.
    """

    __slots__ = ("broker_reasons", "partition_reasons", "records", "response")

    def __init__(self, response: Any = None, records: list[VersionedRecord] | None = None) -> None:
        self.records: list[VersionedRecord] = [] if records is None else records
        self.response = response
        self.partition_reasons: dict[tuple[bytes, int], str] = {}
        self.broker_reasons: dict[int, str] = {}

    def add(self, record: Record, version: int = 0) -> None:
        """One more record."""
        self.records.append((record, version))

    def limit(self) -> None:
        """Refuse what would be too much for one batch (Kafka answers the same)."""
        if len(self.records) > MAX_RECORDS_PER_REQUEST:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class Liveness(Enum):
    """What the controller knows about a broker's present incarnation."""

    GONE = "gone"
    """It has no session, or it ended."""
    PRESUMED = "presumed"
    """Its session lasts, but it was not heard since this controller is active, or its connection broke."""
    ALIVE = "alive"


def _nobody_in_touch(broker_id: int) -> Liveness:
    return Liveness.GONE


class Context:
    """What a decision may know that is in no record: the settings, the chance, the log's end, who is in touch."""

    __slots__ = (
        "api_version",
        "chance",
        "cluster_id",
        "config",
        "kraft_version",
        "liveness",
        "next_offset",
        "node_id",
        "now_ms",
    )

    def __init__(
        self,
        config: NodeConfig,
        chance: Chance,
        *,
        node_id: int = -1,
        cluster_id: str = "",
        next_offset: int = 0,
        now_ms: int = 0,
        api_version: int = 0,
        kraft_version: int = 0,
        liveness: Callable[[int], Liveness] = _nobody_in_touch,
    ) -> None:
        self.config = config
        self.chance = chance
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.next_offset = next_offset
        """The offset that the first record of this decision will have."""
        self.now_ms = now_ms
        self.api_version = api_version
        self.kraft_version = kraft_version
        """The quorum keeps this level in its own log's control records (KIP-853)."""
        self.liveness = liveness


def topic_setting(
    image: MetadataImage,
    context: Context,
    topic_name: str,
    name: str,
    static: Any,
    changed: Mapping[tuple[int, str], Mapping[str, str]] | None = None,
) -> str:
    """The effective text of a setting that topics and brokers name alike.

    As in Kafka: the topic's own, else that of the controller's node, else the cluster's, else the properties file's.
    `changed` has the settings of resources that are about to change, as they will be.
    """
    for kind, resource in (
        (TOPIC_RESOURCE, topic_name),
        (BROKER_RESOURCE, str(context.node_id)),
        (BROKER_RESOURCE, ""),
    ):
        values = (changed or {}).get((kind, resource), image.configs.get((kind, resource)))
        if values is not None and name in values:
            return values[name]
    return str(static)


def min_insync_replicas(
    image: MetadataImage,
    context: Context,
    topic_name: str,
    replica_count: int,
    changed: Mapping[tuple[int, str], Mapping[str, str]] | None = None,
) -> int:
    """How many replicas must be in sync for a record to be committed; never more than there are (KIP-966)."""
    static = context.config.min_insync_replicas
    text = topic_setting(image, context, topic_name, MIN_INSYNC_REPLICAS, static, changed)
    return min(int(text), replica_count)


def unclean_election_enabled(image: MetadataImage, context: Context, topic_name: str) -> bool:
    """Whether a replica out of sync may lead when nobody else can."""
    static = context.config.unclean_leader_election_enable
    return topic_setting(image, context, topic_name, UNCLEAN_LEADER_ELECTION, static).strip().lower() == "true"


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> Broker:
    """The broker that speaks, or STALE_BROKER_EPOCH when it is not this life of it."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch} of broker {broker_id}, but got broker epoch {broker_epoch}",
        )
    return broker


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Whether a broker may be given leaderships."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.active


def default_directory(image: MetadataImage, broker_id: int) -> bytes:
    """Where a new replica on a broker is known to go."""
    broker = image.brokers.get(broker_id)
    return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory


def find_partition(image: MetadataImage, topic_name: str, partition_id: int) -> tuple[Topic, Partition]:
    """A partition by names, or UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topic(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic_name}.")
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic_name}-{partition_id}.")
    return topic, partition
