"""The cluster's topics as groups see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.controller.delta import ImageDelta
from tidelog.controller.image import MetadataImage


class GroupTopics:
    """A view of the newest committed metadata."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self.version = 0

    def note(self, delta: ImageDelta) -> None:
        """Count the changes that can alter what a group reads: topics and partitions made or deleted."""
        made = any(before is None for partitions in delta.partitions.values() for before in partitions.values())
        if made or delta.topics_created or delta.topics_deleted:
            self.version += 1

    def name_of(self, topic_id: bytes) -> str | None:
        """The name behind an id."""
        topic = self._image().topics.get(topic_id)
        return None if topic is None else topic.name

    def id_of(self, name: str) -> bytes | None:
        """The id behind a name."""
        return self._image().topic_ids.get(name)

    def partitions_of(self, name: str) -> int:
        """How many partitions a topic has; 0 when there is no such topic."""
        topic = self._image().topic(name)
        return 0 if topic is None else len(topic.partitions)

    def names(self) -> Iterable[str]:
        """All topics."""
        return self._image().topic_ids
