"""What groups need to know of topics: the node shows it from the cluster's metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Topics(Protocol):
    """The topics there are now."""

    version: int
    """Raised whenever topics or their partitions are made or deleted."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name behind an id."""

    def id_of(self, name: str) -> bytes | None:
        """The id behind a name."""

    def partitions_of(self, name: str) -> int:
        """How many partitions a topic has; 0 when there is no such topic."""

    def names(self) -> Iterable[str]:
        """All topics."""
