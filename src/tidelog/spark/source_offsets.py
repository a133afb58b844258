"""What the driver asks the cluster: which partitions there are, and which offsets the options mean."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping

from tidelog.client.client import Client
from tidelog.client.metadata import TopicView
from tidelog.client.offsets import FoundOffset, list_offsets
from tidelog.errors import ConfigError
from tidelog.spark.contact import first_contact, require_topic
from tidelog.spark.fetching import DataLossError, OffsetRange
from tidelog.spark.options import EARLIEST, LATEST, Offsets, Place, SourceOptions
from tidelog.wire.uuids import from_text

Partition = tuple[str, int]

_FIRST_CONTACT_MS = 15_000
"""How long to wait for a first broker, which may be starting just now."""


class SourceCluster:
    """The cluster as the driver sees it."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        asked = options.client
        self._contact_ms = min(asked.timeout_ms, _FIRST_CONTACT_MS)
        self.client = Client(
            asked.bootstrap,
            client_id=asked.client_id,
            timeout_ms=asked.timeout_ms,
            bootstrap_timeout_ms=self._contact_ms,
        )

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    # --- topics ---

    def partitions(self, *, missing: str = "fail") -> list[Partition]:
        """The partitions that are subscribed to now, sorted.

        A topic that is named and not there is an error that names the nearest, unless `missing` is "leave out".
        """
        views = self._views()
        options = self.options
        if options.subscribe_pattern is not None:
            pattern = re.compile(options.subscribe_pattern)
            names = [name for name, view in views.items() if pattern.fullmatch(name) and not view.is_internal]
        else:
            names = list(options.assign or options.subscribe)
            if missing == "fail":
                for name in names:
                    require_topic(self.client, name, self.options.client.bootstrap, self._contact_ms)
            names = [name for name in names if name in views]
        found = [(name, partition) for name in names for partition in self._partitions_of(views[name], missing)]
        return sorted(found)

    def _views(self) -> Mapping[str, TopicView]:
        asked = None if self.options.subscribe_pattern is not None else (*self.options.assign, *self.options.subscribe)
        with first_contact(self.options.client.bootstrap):
            return self.client.refresh(asked).topics

    def _partitions_of(self, view: TopicView, missing: str) -> Iterable[int]:
        if not self.options.assign:
            return view.partitions
        wanted = self.options.assign[view.name]
        if missing == "fail":
            for partition in wanted:
                if partition not in view.partitions:
                    raise ConfigError(
                        f"option assign: topic {view.name!r} has partitions 0 to {len(view.partitions) - 1}, "
                        f"not {partition}"
                    )
        return [partition for partition in wanted if partition in view.partitions]

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic as the last answer told it; zeroes from a broker that has no ids."""
        view = self.client.metadata.topics.get(topic)
        return view.topic_id if view is not None else bytes(16)

    # --- offsets ---

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where each partition begins."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Where each partition ends for a reader with this isolation level."""
        return self._list(dict.fromkeys(partitions, LATEST))

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, FoundOffset]:
        """The same, and the leader epoch of what stands before it."""
        return self._find(dict.fromkeys(partitions, LATEST))

    def _list(self, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
        return {where: each.offset for where, each in self._find(wanted).items()}

    def _find(self, wanted: Mapping[Partition, int]) -> dict[Partition, FoundOffset]:
        if not wanted:
            return {}
        return list_offsets(self.client, wanted, read_committed=self.options.client.read_committed)

    def resolve(self, place: Place, partitions: list[Partition], *, is_start: bool) -> dict[Partition, int]:
        """The offset of each partition that an option means."""
        name = "startingOffsets" if is_start else "endingOffsets"
        if place.everywhere is not None:
            return self._list(dict.fromkeys(partitions, place.everywhere))
        if place.timestamp_ms is not None:
            return self._at_times(dict.fromkeys(partitions, place.timestamp_ms), is_start)
        if place.timestamps is not None:
            return self._at_times(_each(place.timestamps, partitions, f"{name}ByTimestamp"), is_start)
        given = _each(place.offsets or {}, partitions, name)
        ends = self._list({where: offset for where, offset in given.items() if offset < 0})
        return given | ends

    def _at_times(self, wanted: Mapping[Partition, int], is_start: bool) -> dict[Partition, int]:
        found = self._list(wanted)
        none = [where for where, offset in found.items() if offset < 0]
        if none and is_start and not self.options.by_timestamp_or_latest:
            topic, partition = none[0]
            raise ConfigError(
                f"{topic}-{partition} has no record at or after the starting timestamp {wanted[none[0]]}; "
                "startingOffsetsByTimestampStrategy=latest begins at the end instead"
            )
        return found | self.latest(none)

    def ranges(
        self,
        starts: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        topic_ids: Mapping[str, str] | None = None,
        end_epochs: Mapping[Partition, int] | None = None,
    ) -> list[OffsetRange]:
        """The ranges between two sets of offsets, with who leads each partition.

        `topic_ids` are those the offsets belong to, where that is not simply now; `end_epochs` the leader epochs of
        the ends, where they are known.
        """
        metadata = self.client.metadata
        found = []
        for (topic, partition), end in sorted(ends.items()):
            start = starts[topic, partition]
            if start >= end:
                continue
            view = metadata.topics.get(topic)
            leader = view.partitions.get(partition) if view is not None else None
            known = (topic_ids or {}).get(topic)
            topic_id = from_text(known) if known else self.topic_id(topic)
            place = (topic, partition, start, end, topic_id)
            end_epoch = (end_epochs or {}).get((topic, partition), -1)
            if leader is None or view is None or view.topic_id != topic_id:
                found.append(OffsetRange(*place, end_epoch=end_epoch))
            else:
                broker = metadata.brokers.get(leader.leader)
                found.append(OffsetRange(*place, broker, leader.leader_epoch, end_epoch))
        return found

    def checked(self, starts: dict[Partition, int], ends: dict[Partition, int]) -> None:
        """Offsets a user named must exist; otherwise they are data loss, or are moved to what exists."""
        partitions = list(starts)
        for where, earliest in self.earliest(partitions).items():
            if starts[where] < earliest:
                self._lost(where, f"starts at {starts[where]} but its records before {earliest} were deleted")
                starts[where] = earliest
        for where, latest in self.latest(partitions).items():
            if starts[where] > latest:
                self._lost(where, f"ends at {latest}, before the offset {starts[where]} where reading was to begin")
            if ends[where] > latest:
                self._lost(where, f"ends at {latest}, before the offset {ends[where]} that was asked for")
                ends[where] = latest

    def _lost(self, where: Partition, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{where[0]}-{where[1]} {what}; failOnDataLoss=false reads what is there")
        told = f"tidelog: data loss: {where[0]}-{where[1]} {what}; going on, as failOnDataLoss=false says"
        print(told, file=sys.stderr)


def _each(given: Offsets, partitions: list[Partition], name: str) -> dict[Partition, int]:
    """What an option says of each partition: it must say something of all of them, and of no others."""
    said = {(topic, partition): offset for topic, each in given.items() for partition, offset in each.items()}
    if set(said) != set(partitions):
        missing = sorted(f"{topic}-{partition}" for topic, partition in set(partitions) - set(said))
        other = sorted(f"{topic}-{partition}" for topic, partition in set(said) - set(partitions))
        why = [f"says nothing of {', '.join(missing)}"] if missing else []
        why += [f"names {', '.join(other)}, which is not read"] if other else []
        raise ConfigError(f"option {name} {' and '.join(why)}: it must name all partitions (-2 earliest, -1 latest)")
    return said
