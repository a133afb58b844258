"""What a batch of records changed, so that whoever acts on changes need not compare whole images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.controller.entities import Broker, Partition, Topic

if TYPE_CHECKING:
    from tidelog.controller.image import MetadataImage


class ImageDelta:
    """Changes since the delta was made. Of what changed twice, the first "before" stays.

    `image` of the same moment has what is there now; what is missing from it was removed.
    """

    __slots__ = (
        "brokers",
        "configs",
        "controllers",
        "features",
        "partitions",
        "producer_ids",
        "security",
        "topics_created",
        "topics_deleted",
    )

    def __init__(self) -> None:
        self.brokers: dict[int, Broker | None] = {}
        """Brokers registered, changed or gone, with what they were before."""
        self.controllers: set[int] = set()
        self.topics_created: set[bytes] = set()
        self.topics_deleted: dict[bytes, Topic] = {}
        """As they were when they went; a topic made and deleted in one delta is in neither map."""
        self.partitions: dict[bytes, dict[int, Partition | None]] = {}
        """By topic id and number, with what was there before (None: it is new)."""
        self.configs: dict[tuple[int, str], set[str]] = {}
        """Names that changed, by resource type and resource name."""
        self.features: dict[str, int] = {}
        """With the level before; 0 where there was none."""
        self.producer_ids = False
        self.security = False
        """ACLs, SCRAM credentials, delegation tokens or quotas changed: kept, not acted upon."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in ImageDelta.__slots__)

    # --- what an image notes ---

    def note_broker(self, broker_id: int, before: Broker | None) -> None:
        """A broker changed."""
        self.brokers.setdefault(broker_id, before)

    def note_partition(self, topic_id: bytes, partition_id: int, before: Partition | None) -> None:
        """A partition changed."""
        self.partitions.setdefault(topic_id, {}).setdefault(partition_id, before)

    def note_topic_deleted(self, topic: Topic) -> None:
        """A topic went, with all its partitions."""
        self.partitions.pop(topic.topic_id, None)
        if topic.topic_id in self.topics_created:
            self.topics_created.discard(topic.topic_id)
        else:
            self.topics_deleted[topic.topic_id] = topic

    def note_config(self, resource: tuple[int, str], name: str) -> None:
        """A setting of a resource changed."""
        self.configs.setdefault(resource, set()).add(name)

    # --- after a snapshot ---

    @classmethod
    def between(cls, before: MetadataImage, after: MetadataImage) -> ImageDelta:
        """What differs between two images: for a node that jumped over a part of the log by loading a snapshot."""
        delta = cls()
        for broker_id in before.brokers.keys() | after.brokers.keys():
            old = before.brokers.get(broker_id)
            if old != after.brokers.get(broker_id):
                delta.brokers[broker_id] = old
        for controller_id in before.controllers.keys() | after.controllers.keys():
            if before.controllers.get(controller_id) != after.controllers.get(controller_id):
                delta.controllers.add(controller_id)
        for topic_id, topic in before.topics.items():
            if topic_id not in after.topics:
                delta.topics_deleted[topic_id] = topic
        for topic_id, topic in after.topics.items():
            known = before.topics.get(topic_id)
            if known is None:
                delta.topics_created.add(topic_id)
            for partition_id, partition in topic.partitions.items():
                was = known.partitions.get(partition_id) if known is not None else None
                if was != partition:
                    delta.note_partition(topic_id, partition_id, was)
        nothing: dict[str, str] = {}
        for resource in before.configs.keys() | after.configs.keys():
            old_values, new_values = before.configs.get(resource, nothing), after.configs.get(resource, nothing)
            names = {
                name for name in old_values.keys() | new_values.keys() if old_values.get(name) != new_values.get(name)
            }
            if names:
                delta.configs[resource] = names
        for name in before.features.keys() | after.features.keys():
            if before.features.get(name, 0) != after.features.get(name, 0):
                delta.features[name] = before.features.get(name, 0)
        delta.producer_ids = before.next_producer_id != after.next_producer_id
        delta.security = before.security != after.security
        return delta
