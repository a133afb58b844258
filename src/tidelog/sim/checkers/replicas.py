"""Logs and watermarks of replicas, looked at after every step of their nodes."""

from __future__ import annotations

from struct import Struct

from tidelog.controller.image import TOPIC_RESOURCE
from tidelog.replica.leadership import Leadership
from tidelog.replica.partition import Partition, Role
from tidelog.sim.checkers.base import Checker, History, Lives
from tidelog.sim.checkers.compacted import contradiction, disagreement
from tidelog.sim.checkers.replay import min_isr_of
from tidelog.sim.machines import Process
from tidelog.storage import File, Storage
from tidelog.wire.batch import iterate_batches

Key = tuple[bytes, int]
HEAD = Struct(">qiibIhi")
"""The first fields of a batch: base offset, size, leader epoch, magic, checksum, attributes, last offset's delta."""
BEFORE_SIZE = 12
"""Bytes of a batch that its size does not count."""


class OneLeaderAnEpoch(Checker):
    """In one leader epoch of a partition, one node at most ever takes itself for the leader."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._leaders: dict[tuple[bytes, int, int], int] = {}

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if partition.role is Role.LEADER:
            key = (partition.topic_id, partition.index, partition.leader_epoch)
            known = self._leaders.setdefault(key, process.host.name)
            if known != process.host.name:
                raise self.violated(
                    f"{partition} has the leaders {known} and {process.host.name} in epoch {partition.leader_epoch}"
                )


class WatermarkWithinInSyncLogs(Checker):
    """When a leader's watermark or ISR moves, every replica it counts on has the records below the watermark.

    Nobody's watermark is ever beyond its own log.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._seen = Lives()

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if partition.high_watermark > partition.log.log_end_offset:
            raise self.violated(f"{partition}: the watermark of node {process.host.name} is beyond its own log")
        leadership = partition.leadership
        if leadership is None:
            return
        seen = self._seen.of(process)
        before = seen.get(partition)
        seen[partition] = leadership.epoch
        if before == leadership.epoch:
            self._look(process.host.name, partition, leadership)

    def _look(self, leader: int, partition: Partition, leadership: Leadership) -> None:
        committed = self._committed_isr(partition)
        for member, follower in leadership.followers.items():
            other = self.history.cluster.world.hosts[member].process
            # One that is out of the ISR without its leader knowing holds the watermark up, whatever it has.
            if member not in leadership.isr or member not in committed or other is None or not other.alive:
                continue
            copy = other.node.replicas.partitions.get((partition.topic, partition.index))
            # One that knows a later epoch may have cut what this leader does not know to be over; one that lives again
            # may have lost what it had, and leaves the ISR when it registers; one that knows the topic to be made anew
            # under its name has another log.
            if (
                copy is None
                or copy.topic_id != partition.topic_id
                or copy.leader_epoch != leadership.epoch
                or follower.broker_epoch != other.node.lifecycle.broker_epoch
            ):
                continue
            if copy.log.log_end_offset < partition.high_watermark:
                raise self.violated(
                    f"{partition}: the watermark of leader {leader} is {partition.high_watermark}, but node {member}, "
                    f"in sync, ends at {copy.log.log_end_offset}"
                )

    def _committed_isr(self, partition: Partition) -> tuple[int, ...]:
        topic = self.history.replay.image.topics.get(partition.topic_id)
        return () if topic is None else topic.partitions[partition.index].isr


class WatermarkWaitsForMinIsr(Checker):
    """Below min.insync.replicas nothing is committed (KIP-966).

    ISR and setting both are those of the metadata that the leader has applied, which may be older than what is
    committed: they come in one log, so whoever knows of a decision knows what it was decided by.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._seen = Lives()
        self._applied = Lives()

    def metadata_changed(self, process: Process) -> None:
        applied = self._applied.of(process)
        offset = process.node.cluster.image_offset
        if offset != applied.get("offset", -1):
            applied["before"], applied["offset"] = applied.get("offset", -1), offset
            applied["step"] = self.history.cluster.world.steps

    def replica_changed(self, process: Process, partition: Partition) -> None:
        leadership = partition.leadership
        if leadership is None:
            return
        seen = self._seen.of(process)
        epoch, high_watermark = seen.get(partition, (-1, -1))
        seen[partition] = (leadership.epoch, partition.high_watermark)
        if epoch != leadership.epoch or partition.high_watermark <= high_watermark:
            return
        if not self._had_enough(process, partition, leadership):
            raise self.violated(
                f"{partition}: leader {process.host.name} moved the watermark from {high_watermark} to "
                f"{partition.high_watermark} with {leadership.isr} in sync, of {partition.config.min_insync_replicas} "
                "wanted"
            )

    def _had_enough(self, process: Process, partition: Partition, leadership: Leadership) -> bool:
        """Whether the metadata that the leader has applied let it commit: now, or before a batch of this very step."""
        applied = self._applied.of(process)
        last = process.node.cluster.image_offset + 1
        first = applied["before"] + 1 if applied["step"] == self.history.cluster.world.steps else last
        for offset in range(last, first - 1, -1):
            image = self.history.replay.images.get(offset)
            topic = None if image is None else image.topics.get(partition.topic_id)
            known = None if topic is None else topic.partitions.get(partition.index)
            if image is not None and known is not None and known.leader_epoch == leadership.epoch:
                wanted = min(min_isr_of(image, partition.topic), len(known.replicas))
                if len(known.isr) >= wanted:
                    return True
        return False


class WatermarkNeverGoesBack(Checker):
    """Within a leader's epoch its watermark only grows."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._highest = Lives()

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if partition.role is not Role.LEADER:
            return
        known = self._highest.of(process)
        epoch, highest = known.get(partition, (-1, -1))
        if epoch == partition.leader_epoch and partition.high_watermark < highest:
            raise self.violated(
                f"{partition}: the watermark of leader {process.host.name} went from {highest} to "
                f"{partition.high_watermark} in epoch {epoch}"
            )
        known[partition] = (partition.leader_epoch, partition.high_watermark)


class CommittedRecordsStay(Checker):
    """What lies below any replica's watermark is the same everywhere and forever, epochs and checksums alike."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._committed: dict[Key, dict[int, tuple[int, int, int]]] = {}
        """By partition and base offset: the last offset, epoch and checksum of a committed batch. Compaction rewrites
        batches, so where it is at work a batch has no checksum that must stay."""
        self._places = Lives()

    def replica_changed(self, process: Process, partition: Partition) -> None:
        places = self._places.of(process)
        place = places.get(partition)
        if place is None:
            place = places[partition] = _Place(partition.log.log_start_offset)
        if (
            partition.high_watermark > place.offset
            and not self.history.may_lose(partition.topic)
            and (process.host.name, partition.topic, partition.index) not in self.history.rotten
        ):
            self._look(process.host.name, partition, place)

    def _look(self, node_id: int, partition: Partition, place: _Place) -> None:
        committed = self._committed.setdefault((partition.topic_id, partition.index), {})
        is_compacted = partition.config.is_compacted
        if place.offset < partition.log.log_start_offset:
            place.begin_at(partition.log.log_start_offset)  # what came before is deleted
        while place.offset < partition.high_watermark:
            head = place.next_head(partition)
            if head is None:
                place.offset = partition.high_watermark
                return
            base_offset, size, epoch, _, crc, _, last_delta = head
            here = (base_offset + last_delta, epoch, 0 if is_compacted else crc)
            known = committed.setdefault(base_offset, here)
            if known != here:
                raise self.violated(
                    f"{partition} offset {base_offset}: node {node_id} has committed (last offset, epoch, checksum) "
                    f"{here}, where {known} was committed before"
                )
            place.offset = base_offset + last_delta + 1
            place.position += size + BEFORE_SIZE


class _Place:
    """How far a replica was looked at: an offset, and where in which file it is."""

    __slots__ = ("file", "generation", "offset", "position")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.file: File | None = None
        self.generation = 0
        self.position = 0

    def begin_at(self, offset: int) -> None:
        """Go on at another offset."""
        self.offset = offset
        self.file = None

    def next_head(self, partition: Partition) -> tuple[int, ...] | None:
        """The head of the batch at the offset, or of the first one after it; None when there is none."""
        if self.file is None or self.file.generation != self.generation or self.position >= self.file.size:
            read = partition.log.read(self.offset, 1, up_to_offset=partition.high_watermark, at_least_one=True)
            if not read.parts:
                return None
            self.file, self.position = read.parts[0].file, read.parts[0].position
            self.generation = self.file.generation
        return HEAD.unpack(self.file.read(self.position, HEAD.size))


class NewReplicasAreEmpty(Checker):
    """A replica of a topic begins with nothing, whatever another topic of its name has left on the disk."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._known: set[tuple[int, Storage, bytes, int]] = set()

    def replica_changed(self, process: Process, partition: Partition) -> None:
        disk = process.node.replicas.directory_of(partition).storage
        key = (process.host.name, disk, partition.topic_id, partition.index)
        if key in self._known:
            return
        self._known.add(key)
        if partition.log.log_end_offset:
            raise self.violated(
                f"{partition} is new on node {process.host.name}, and its log ends at {partition.log.log_end_offset}"
            )


class ReplicasAreIdentical(Checker):
    """In the end, with everybody in sync, the logs of a partition's replicas are the same bytes.

    Replicas compact on their own: there they say the same of every key and of every offset that is left. Coordinators
    may be writing still: of the topics of groups and transactions what all have is the same.
    """

    def at_end(self) -> None:
        self._look_at_work()
        for topic, index, _ in self.history.partitions():
            whole = self.history.whole(topic, index)
            logs = {node_id: self.history.cluster.log_bytes(node_id, topic, index) for node_id in whole}
            begin = max((self._log_start(node_id, topic, index) for node_id in whole), default=0)
            if begin:  # what was deleted goes at each replica's own time, file by file
                logs = {node_id: _from_offset(data, begin) for node_id, data in logs.items()}
            if self._is_compacted(topic):
                difference = disagreement(logs)
                if difference:
                    raise self.violated(f"{topic}-{index}: {difference}")
            elif len(set(logs.values())) > 1:
                sizes = {node_id: len(data) for node_id, data in logs.items()}
                raise self.violated(f"{topic}-{index}: the logs differ; bytes by node: {sizes}")

    def _look_at_work(self) -> None:
        work = self.history.shape.work
        for topic, index in () if work is None else work.partitions:
            whole = self.history.whole(topic, index)
            logs = {node_id: self.history.cluster.log_bytes(node_id, topic, index) for node_id in whole}
            if self._is_compacted(topic):
                difference = contradiction(logs)
            else:
                common = min(map(len, logs.values()), default=0)
                difference = "the logs differ" if len({data[:common] for data in logs.values()}) > 1 else ""
            if difference:
                raise self.violated(f"{topic}-{index}: {difference}")

    def _log_start(self, node_id: int, topic: str, index: int) -> int:
        hosted = self.history.cluster.process(node_id).node.replicas.partitions.get((topic, index))
        start = 0 if hosted is None else hosted.log.log_start_offset
        if start > self.history.deleted_to.get((topic, index), 0) and not self.history.may_lose(topic):
            raise self.violated(f"{topic}-{index} begins at {start} on node {node_id}: nobody has deleted so much")
        return start

    def _is_compacted(self, topic: str) -> bool:
        policy = self.history.cluster.newest_image().config(TOPIC_RESOURCE, topic).get("cleanup.policy", "")
        return "compact" in policy


def _from_offset(data: bytes, offset: int) -> bytes:
    """The batches of a log that have records from an offset on."""
    position = next((one.position for one in iterate_batches(data) if one.last_offset >= offset), len(data))
    return data[position:]
