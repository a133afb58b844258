"""The cluster's metadata as its log describes it: `apply` a record, and nothing else changes it.

Brokers and controllers hold one each, built by the same code from the same records. Records between a begin and an end
of a metadata transaction (KIP-868) take effect together at the end, or never when it is aborted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tidelog.controller import levels
from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import Broker, Partition, RegisteredController, Topic
from tidelog.controller.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from tidelog.controller.security import SecurityImage
from tidelog.errors import CorruptionError
from tidelog.wire.uuids import to_text

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
"""Kinds of resource that configs belong to, as DescribeConfigs numbers them."""


class UnknownRecordError(CorruptionError):
    """The metadata log has a record of a kind that this software does not know: it must not be skipped."""


class MetadataImage:
    """Everything the metadata log says, as of the last record applied."""

    __slots__ = (
        "brokers",
        "configs",
        "controllers",
        "features",
        "next_producer_id",
        "producer_id_owner",
        "security",
        "topic_ids",
        "topics",
        "transaction",
    )

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.controllers: dict[int, RegisteredController] = {}
        self.topics: dict[bytes, Topic] = {}
        """By topic id; `topic_ids` leads there from a name and has the same topics."""
        self.topic_ids: dict[str, bytes] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        """By resource type and name; never an empty map. The broker resource "" is the default of all brokers."""
        self.features: dict[str, int] = {}
        """Finalized levels; a feature at level 0 is absent."""
        self.next_producer_id = -1
        """The first producer id that no block has had; -1 before the first block."""
        self.producer_id_owner = (-1, -1)
        """Broker and broker epoch that had the last block."""
        self.security = SecurityImage()
        self.transaction: list[Record] | None = None
        """Records of a metadata transaction that has not ended yet."""

    # --- reading ---

    @property
    def metadata_version(self) -> int:
        """The finalized level that says which record versions may be written."""
        return self.features.get(levels.METADATA_VERSION, levels.LOWEST_LEVEL)

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept (KIP-966)."""
        return self.features.get(
            levels.ELIGIBLE_LEADER_REPLICAS_VERSION, 0
        ) > 0 and levels.has_eligible_leader_replicas(self.metadata_version)

    def topic(self, name: str) -> Topic | None:
        """A topic by its name."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, topic_id: bytes, partition_id: int) -> Partition | None:
        """A partition by its topic's id and its number."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        """Every partition there is."""
        for topic in self.topics.values():
            for partition_id, partition in topic.partitions.items():
                yield topic, partition_id, partition

    def config(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """What was set for a resource; do not change it."""
        return self.configs.get((resource_type, resource_name), {})

    def copy(self) -> MetadataImage:
        """The same image in maps of its own; values are shared, as they never change."""
        copy = MetadataImage()
        copy.brokers = dict(self.brokers)
        copy.controllers = dict(self.controllers)
        copy.topics = {topic_id: topic.copy() for topic_id, topic in self.topics.items()}
        copy.topic_ids = dict(self.topic_ids)
        copy.configs = {resource: dict(values) for resource, values in self.configs.items()}
        copy.features = dict(self.features)
        copy.next_producer_id = self.next_producer_id
        copy.producer_id_owner = self.producer_id_owner
        copy.security = self.security.copy()
        copy.transaction = None if self.transaction is None else list(self.transaction)
        return copy

    def __eq__(self, other: object) -> bool:
        if type(other) is not MetadataImage:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in MetadataImage.__slots__)

    __hash__ = None  # type: ignore[assignment]

    # --- changing ---

    def apply(self, record: Record, delta: ImageDelta | None = None) -> None:
        """Take one record of the log, noting in `delta` what it changed."""
        delta = ImageDelta() if delta is None else delta
        kind = type(record)
        if kind in _TRANSACTION_RECORDS:
            self._apply_transaction(record, delta)
        elif self.transaction is not None:
            if kind not in _APPLY and kind not in _KEPT:
                raise UnknownRecordError(f"a metadata record of an unknown kind: {record!r}")
            self.transaction.append(record)
        else:
            self._apply_now(record, delta)

    def apply_all(self, records: Iterable[Record], delta: ImageDelta | None = None) -> None:
        """Take records in their order."""
        delta = ImageDelta() if delta is None else delta
        for record in records:
            self.apply(record, delta)

    def _apply_now(self, record: Record, delta: ImageDelta) -> None:
        function = _APPLY.get(type(record))
        if function is not None:
            function(self, record, delta)
        elif self.security.apply(record):
            delta.security = True
        else:
            raise UnknownRecordError(f"a metadata record of an unknown kind: {record!r}")

    def _apply_transaction(self, record: Record, delta: ImageDelta) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self.transaction is not None:
                raise CorruptionError("a metadata transaction begins inside another")
            self.transaction = []
            return
        if self.transaction is None:
            raise CorruptionError(f"no metadata transaction is open for {record!r}")
        held, self.transaction = self.transaction, None
        if isinstance(record, EndTransactionRecord):
            for each in held:
                self._apply_now(each, delta)

    def _register_broker(self, record: RegisterBrokerRecord, delta: ImageDelta) -> None:
        delta.note_broker(record.broker_id, self.brokers.get(record.broker_id))
        self.brokers[record.broker_id] = Broker.from_record(record)

    def _unregister_broker(self, record: UnregisterBrokerRecord, delta: ImageDelta) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        delta.note_broker(broker.broker_id, broker)
        del self.brokers[broker.broker_id]

    def _fence(self, record: FenceBrokerRecord, delta: ImageDelta) -> None:
        broker = self._broker(record.id, record.epoch)
        delta.note_broker(broker.broker_id, broker)
        self.brokers[broker.broker_id] = broker.changed(fenced=True)

    def _unfence(self, record: UnfenceBrokerRecord, delta: ImageDelta) -> None:
        broker = self._broker(record.id, record.epoch)
        delta.note_broker(broker.broker_id, broker)
        self.brokers[broker.broker_id] = broker.changed(fenced=False)

    def _change_broker(self, record: BrokerRegistrationChangeRecord, delta: ImageDelta) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        delta.note_broker(broker.broker_id, broker)
        self.brokers[broker.broker_id] = broker.changed(
            fenced=_flag(record.fenced, record),
            in_controlled_shutdown=_flag(record.in_controlled_shutdown, record),
            log_dirs=tuple(record.log_dirs) or None,
            cordoned_log_dirs=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )

    def _register_controller(self, record: RegisterControllerRecord, delta: ImageDelta) -> None:
        delta.controllers.add(record.controller_id)
        self.controllers[record.controller_id] = RegisteredController(record)

    def _add_topic(self, record: TopicRecord, delta: ImageDelta) -> None:
        if record.topic_id in self.topics or record.name in self.topic_ids:
            raise CorruptionError(f"topic {record.name} ({to_text(record.topic_id)}) is made twice")
        delta.topics_created.add(record.topic_id)
        self.topics[record.topic_id] = Topic(record.name, record.topic_id)
        self.topic_ids[record.name] = record.topic_id

    def _remove_topic(self, record: RemoveTopicRecord, delta: ImageDelta) -> None:
        topic = self._topic(record.topic_id)
        delta.note_topic_deleted(topic)
        del self.topics[topic.topic_id]
        del self.topic_ids[topic.name]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        delta.configs.pop((TOPIC_RESOURCE, topic.name), None)

    def _set_partition(self, record: PartitionRecord, delta: ImageDelta) -> None:
        partitions = self._topic(record.topic_id).partitions
        delta.note_partition(record.topic_id, record.partition_id, partitions.get(record.partition_id))
        partitions[record.partition_id] = Partition.from_record(record)

    def _change_partition(self, record: PartitionChangeRecord, delta: ImageDelta) -> None:
        topic = self._topic(record.topic_id)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise CorruptionError(f"a change of partition {topic.name}-{record.partition_id}, which does not exist")
        delta.note_partition(record.topic_id, record.partition_id, partition)
        topic.partitions[record.partition_id] = partition.merged(record)

    def _clear_elr(self, record: ClearElrRecord, delta: ImageDelta) -> None:
        if record.topic_name:
            topic = self.topic(record.topic_name)
            if topic is None:
                raise CorruptionError(f"the ELR of topic {record.topic_name} is cleared, which does not exist")
            topics: Iterable[Topic] = (topic,)
        else:
            topics = self.topics.values()
        for topic in topics:
            for partition_id, partition in topic.partitions.items():
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    delta.note_partition(topic.topic_id, partition_id, partition)
                    topic.partitions[partition_id] = partition.without_elr()

    def _set_config(self, record: ConfigRecord, delta: ImageDelta) -> None:
        resource = (record.resource_type, record.resource_name)
        delta.note_config(resource, record.name)
        values = self.configs.setdefault(resource, {})
        if record.value is not None:
            values[record.name] = record.value
        else:
            values.pop(record.name, None)
        if not values:
            del self.configs[resource]

    def _set_feature(self, record: FeatureLevelRecord, delta: ImageDelta) -> None:
        if record.name == levels.METADATA_VERSION:
            levels.check_metadata_version(record.feature_level)
        delta.features.setdefault(record.name, self.features.get(record.name, 0))
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _set_producer_ids(self, record: ProducerIdsRecord, delta: ImageDelta) -> None:
        delta.producer_ids = True
        self.next_producer_id = record.next_producer_id
        self.producer_id_owner = (record.broker_id, record.broker_epoch)

    def _nothing(self, record: NoOpRecord, delta: ImageDelta) -> None:
        """Written only so that the log moves on."""

    def _topic(self, topic_id: bytes) -> Topic:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise CorruptionError(f"a metadata record speaks of topic {to_text(topic_id)}, which does not exist")
        return topic

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise CorruptionError(f"a metadata record speaks of broker {broker_id} epoch {epoch}, not registered so")
        return broker


def _flag(value: int, record: Record) -> bool | None:
    """A change of a broker's state as Kafka writes it: 1 on, -1 off, 0 as it was."""
    try:
        return _FLAGS[value]
    except KeyError:
        raise CorruptionError(f"an unknown kind of change in {record!r}") from None


_FLAGS: dict[int, bool | None] = {1: True, 0: None, -1: False}

_TRANSACTION_RECORDS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})

_KEPT = frozenset(
    {
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        UserScramCredentialRecord,
        RemoveUserScramCredentialRecord,
        DelegationTokenRecord,
        RemoveDelegationTokenRecord,
        ClientQuotaRecord,
        ZkMigrationStateRecord,
    }
)

_APPLY: dict[type[Any], Callable[[MetadataImage, Any, ImageDelta], None]] = {
    RegisterBrokerRecord: MetadataImage._register_broker,
    UnregisterBrokerRecord: MetadataImage._unregister_broker,
    FenceBrokerRecord: MetadataImage._fence,
    UnfenceBrokerRecord: MetadataImage._unfence,
    BrokerRegistrationChangeRecord: MetadataImage._change_broker,
    RegisterControllerRecord: MetadataImage._register_controller,
    TopicRecord: MetadataImage._add_topic,
    RemoveTopicRecord: MetadataImage._remove_topic,
    PartitionRecord: MetadataImage._set_partition,
    PartitionChangeRecord: MetadataImage._change_partition,
    ClearElrRecord: MetadataImage._clear_elr,
    ConfigRecord: MetadataImage._set_config,
    FeatureLevelRecord: MetadataImage._set_feature,
    ProducerIdsRecord: MetadataImage._set_producer_ids,
    NoOpRecord: MetadataImage._nothing,
}


def records_for_snapshot(image: MetadataImage) -> Iterator[VersionedRecord]:
    """The records that rebuild an image, in an order that depends on nothing but its content.

    metadata.version comes first, as Kafka wants it. An open metadata transaction has no place in a snapshot: wait for
    its end (`image.transaction is None`).
    """
    if image.transaction is not None:
        raise ValueError("a snapshot cannot be taken inside a metadata transaction")
    level = image.metadata_version
    for name in sorted(image.features, key=lambda name: (name != levels.METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name]), 0
    for broker_id in sorted(image.brokers):
        yield image.brokers[broker_id].to_record(), levels.register_broker_version(level)
    for controller_id in sorted(image.controllers):
        yield image.controllers[controller_id].to_record(), 0
    partition_version = levels.partition_version(level)
    for topic_id in sorted(image.topics):
        topic = image.topics[topic_id]
        yield TopicRecord(name=topic.name, topic_id=topic_id), 0
        for partition_id in sorted(topic.partitions):
            yield topic.partitions[partition_id].to_record(topic_id, partition_id), partition_version
    for (kind, resource_name), values in sorted(image.configs.items()):
        for name in sorted(values):
            yield (
                ConfigRecord(resource_type=kind, resource_name=resource_name, name=name, value=values[name]),
                0,
            )
    if image.next_producer_id >= 0:
        broker_id, broker_epoch = image.producer_id_owner
        yield (
            ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=image.next_producer_id),
            0,
        )
    yield from image.security.records()
