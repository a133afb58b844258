"""The quorum's log and what nodes make of it."""

from __future__ import annotations

from tidelog.controller.image import records_for_snapshot
from tidelog.quorum import snapshot
from tidelog.quorum.metadata_log import DIRECTORY as METADATA_DIRECTORY
from tidelog.quorum.snapshot import BOOTSTRAP, SnapshotId
from tidelog.sim.checkers.base import Checker, History, Lives
from tidelog.sim.machines import Process
from tidelog.wire import codec


class LeaderIsInSync(Checker):
    """The leader of a partition is in its ISR, ISR and ELR are replicas, and nobody is in both."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to: dict[int, int] = {}

    def metadata_changed(self, process: Process) -> None:
        cluster = process.node.cluster
        if self._looked_to.get(process.host.name) == cluster.image_offset:
            return
        self._looked_to[process.host.name] = cluster.image_offset
        for topic, index, one in cluster.image.partitions():
            isr, elr = set(one.isr), set(one.eligible_leader_replicas)
            if (one.leader >= 0 and one.leader not in isr) or isr & elr or not (isr | elr) <= set(one.replicas):
                raise self.violated(
                    f"{topic.name}-{index}: leader {one.leader}, in sync {one.isr}, eligible "
                    f"{one.eligible_leader_replicas}, replicas {one.replicas}"
                )


class EpochsOnlyGrow(Checker):
    """Leader and partition epochs never go back in one life of a node, nor does the quorum's."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._seen: dict[int, tuple[Process, int, dict[tuple[bytes, int], tuple[int, int]]]] = {}
        self._quorum: dict[int, int] = {}

    def metadata_changed(self, process: Process) -> None:
        name = process.host.name
        cluster = process.node.cluster
        epoch = cluster.quorum.epoch
        if self._seen.get(name, (None,))[0] is process and epoch < self._quorum.get(name, 0):
            raise self.violated(f"node {name}: the quorum's epoch went from {self._quorum[name]} to {epoch}")
        self._quorum[name] = epoch
        known = self._seen.get(name)
        if known is not None and known[0] is process and known[1] == cluster.image_offset:
            return
        former = known[2] if known is not None and known[0] is process else {}
        now = {
            (topic.topic_id, index): (one.leader_epoch, one.partition_epoch)
            for topic, index, one in cluster.image.partitions()
        }
        for key, epochs in now.items():
            before = former.get(key, (-1, -1))
            if epochs[0] < before[0] or epochs[1] < before[1]:
                raise self.violated(f"node {name}: leader and partition epoch went from {before} to {epochs}")
        self._seen[name] = (process, cluster.image_offset, now)


class OneQuorumLeaderAnEpoch(Checker):
    """An epoch of the quorum has one leader at most."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._leaders: dict[int, int] = {}

    def metadata_changed(self, process: Process) -> None:
        quorum = process.node.cluster.quorum
        if quorum.is_leader:
            known = self._leaders.setdefault(quorum.epoch, process.host.name)
            if known != process.host.name:
                raise self.violated(f"epoch {quorum.epoch} has the leaders {known} and {process.host.name}")


class CommittedMetadataStays(Checker):
    """A batch of the metadata log that any node was told is committed is the same for everybody, forever."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._committed: dict[int, tuple[int, int, int]] = {}
        """Last offset, epoch and checksum by base offset."""
        self._looked_to: dict[int, tuple[Process, int]] = {}
        self._end_offset = 0

    def metadata_changed(self, process: Process) -> None:
        quorum = process.node.cluster.quorum
        name = process.host.name
        former, looked_to = self._looked_to.get(name, (None, 0))
        offset = max(looked_to if former is process else 0, quorum.log_start_offset)
        end_offset = min(quorum.high_watermark, quorum.log_end_offset)
        self._looked_to[name] = (process, max(offset, end_offset))
        image_offset = process.node.cluster.image_offset
        if image_offset >= quorum.high_watermark:
            raise self.violated(
                f"node {name} has applied offset {image_offset} of the metadata, committed to {quorum.high_watermark}"
            )
        replay = self.history.replay
        for batch in quorum.batches(offset, end_offset) if offset < end_offset else ():
            here = (batch.last_offset, batch.partition_leader_epoch, batch.crc)
            known = self._committed.setdefault(batch.base_offset, here)
            if known != here:
                raise self.violated(
                    f"offset {batch.base_offset} of the metadata: node {name} has {here}, where {known} was committed"
                )
            if batch.base_offset == replay.end_offset:
                replay.feed(batch)
        self._end_offset = max(self._end_offset, end_offset)

    def at_end(self) -> None:
        for name in self.history.cluster.node_ids:
            end_offset = self.history.cluster.process(name).node.cluster.quorum.log_end_offset
            if end_offset < self._end_offset:
                raise self.violated(f"node {name} ends at {end_offset}; {self._end_offset} was committed")


class SnapshotsEqualReplay(Checker):
    """A snapshot holds what its log makes, and whoever begins with one knows what the others know."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._written: dict[int, SnapshotId | None] = {}
        self._lives = Lives()

    def metadata_changed(self, process: Process) -> None:
        cluster = process.node.cluster
        name = process.host.name
        latest = cluster.quorum.latest_snapshot
        if latest != self._written.get(name) and latest is not None and latest != BOOTSTRAP:
            self._written[name] = latest
            self._look_at_file(process, latest)
        life = self._lives.of(process)
        start_offset = cluster.quorum.log_start_offset
        if cluster.image_offset >= 0 and life.get("start") != start_offset:
            life["start"] = start_offset  # it has just begun, or loaded another's snapshot
            known = self.history.replay.images.get(cluster.image_offset + 1)
            if known is not None and cluster.image != known:
                raise self.violated(
                    f"node {name} knows something else at offset {cluster.image_offset} of the metadata"
                )

    def _look_at_file(self, process: Process, snapshot_id: SnapshotId) -> None:
        known = self.history.replay.images.get(snapshot_id.end_offset)
        if known is None:
            raise self.violated(f"node {process.host.name} has a snapshot {snapshot_id} of what is not committed")
        path = f"{METADATA_DIRECTORY}/{snapshot_id.file_name}"
        found = snapshot.read(process.host.disks[0].read_file(path), path).records
        wanted = [record for record, _ in records_for_snapshot(known)]
        if found != wanted:
            raise self.violated(
                f"snapshot {snapshot_id} of node {process.host.name} has {len(found)} records that differ from the "
                f"{len(wanted)} that its log makes"
            )


class ImagesConverge(Checker):
    """In the end every node has made the same of the metadata log."""

    def at_end(self) -> None:
        images: dict[int, dict[int, list[bytes]]] = {}
        for name in self.history.cluster.node_ids:
            cluster = self.history.cluster.process(name).node.cluster
            records = [codec.encode(record, version) for record, version in records_for_snapshot(cluster.image)]
            images.setdefault(cluster.image_offset, {})[name] = records
        for offset, same in images.items():
            first = next(iter(same.values()))
            odd = [name for name, records in same.items() if records != first]
            if odd:
                raise self.violated(f"at offset {offset} of the metadata the nodes {odd} know something else")
