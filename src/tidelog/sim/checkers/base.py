"""What checkers have in common: what they may look at, when they look, and how they complain."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.errors import KafkaError
from tidelog.replica.partition import Partition
from tidelog.sim.checkers.replay import Replay
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.consumer import Consumer
from tidelog.sim.machines import Process
from tidelog.sim.offset_asker import OffsetAsker
from tidelog.sim.producer import Producer
from tidelog.sim.shape import Shape
from tidelog.wire.batch import iterate_batches, iterate_records

if TYPE_CHECKING:
    from tidelog.sim.work import Work


class Violation(Exception):
    """Something that must hold does not; the message says what was seen."""

    def __init__(self, checker: str, message: str) -> None:
        super().__init__(f"{checker}: {message}")
        self.checker = checker


class History:
    """One simulated history: the cluster as it is now, and the clients with all they remember."""

    def __init__(self, cluster: SimulatedCluster, shape: Shape) -> None:
        self.cluster = cluster
        self.shape = shape
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.askers: list[OffsetAsker] = []
        self.work: Work | None = None
        """The clients of groups and transactions, where there are some."""
        self.failing_disks: Container[int] = ()
        """Nodes that may give up, because their disk, or the one with their metadata, is full or fails."""
        self.failing_directories: Container[int] = ()
        """Nodes of whose log directories one that has no metadata is full or fails: they go on without it."""
        self.rotten: Container[tuple[int, str, int]] = ()
        """Replicas that rot has hit: what they have on the disk need not be what others have."""
        self.asked_unclean: set[str] = set()
        """Topics for which an operator asked for an unclean election."""
        self.deleted_to: Mapping[tuple[str, int], int] = {}
        """By topic and partition: up to where an admin asked for records to be deleted."""
        self.replay = Replay()
        """The committed metadata, applied once more by somebody who is no node."""
        self._may_lose: dict[str, bool] = {}
        self._values_at = -1
        self._values: dict[tuple[str, int], dict[int, str]] = {}
        """What `values` found, while nothing happens."""

    def may_lose(self, topic: str) -> bool:
        """Whether records of a topic may be lost without that being a bug."""
        known = self._may_lose.get(topic)
        if known is None:
            known = self._may_lose[topic] = self.shape.may_lose(topic)
        return known

    def partitions(self) -> Sequence[tuple[str, int, tuple[int, ...]]]:
        """Topic, index and replicas of everything that is written to, as the newest metadata has it."""
        image = self.cluster.newest_image()
        found = []
        for topic in self.shape.topics:
            known = image.topic(topic.name)
            assert known is not None
            found += [(topic.name, index, partition.replicas) for index, partition in known.partitions.items()]
        return found

    def whole(self, topic: str, index: int) -> list[int]:
        """The replicas of a partition, in their order, whose logs must be what was written, now that faults are over.

        Those that rot has never hit; and of the others whoever is in sync and has nothing more whose checksum is wrong:
        it was copied again, and what it has now is as good as any.
        """
        known = self.cluster.newest_image().topic(topic)
        assert known is not None
        partition = known.partitions[index]
        return [
            one
            for one in partition.replicas
            if (one, topic, index) not in self.rotten
            or (one in partition.isr and _is_sound(self.cluster.log_bytes(one, topic, index)))
        ]

    def values(self, topic: str, index: int) -> dict[int, str]:
        """The final log of a partition by offset, as its leader has it."""
        moment = self.cluster.world.steps
        if self._values_at != moment:
            self._values_at, self._values = moment, {}
        known = self._values.get((topic, index))
        if known is None:
            known = self._values[topic, index] = self._read_values(topic, index)
        return known

    def _read_values(self, topic: str, index: int) -> dict[int, str]:
        known = self.cluster.newest_image().topic(topic)
        assert known is not None
        partition = known.partitions[index]
        whole = self.whole(topic, index)
        if not whole:
            return {}
        whole.sort(key=lambda one: one != partition.leader)
        hosted = self.cluster.process(whole[0]).node.replicas.partitions.get((topic, index))
        begin = 0 if hosted is None else hosted.log.log_start_offset
        data = self.cluster.log_bytes(whole[0], topic, index)
        return {
            record.offset: (record.value or b"").decode()
            for batch in iterate_batches(data)
            for record in iterate_records(batch)
            if record.offset >= begin  # what was deleted may be in the files for a while, for nobody to see
        }


def _is_sound(data: bytes) -> bool:
    """Whether every checksum of a log is right."""
    try:
        return all(batch.crc_matches() for batch in iterate_batches(data))
    except KafkaError:
        return False


class Lives:
    """What a checker remembers of each node's present life; a new life begins with nothing."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Process, dict[Any, Any]]] = {}

    def of(self, process: Process) -> dict[Any, Any]:
        """The notes on this life of a node."""
        known = self._of.get(process.host.name)
        if known is None or known[0] is not process:
            known = self._of[process.host.name] = (process, {})
        return known[1]


class Checker:
    """Looks on; raises Violation, by `violated`, when what it protects is broken."""

    def __init__(self, history: History) -> None:
        self.history = history

    def metadata_changed(self, process: Process) -> None:
        """A node's part of the quorum moved: its epoch, its role, what is committed, what it has applied."""

    def replica_changed(self, process: Process, partition: Partition) -> None:
        """A replica's watermark, epoch, role or ISR, or the ISR it wants, changed; or it is new in this life."""

    def told(self) -> None:
        """Somebody told something, or ended itself."""

    def ended(self, process: Process) -> None:
        """A node did not outlive a step. Its disk may have changed since; what it held in memory is as it was."""

    def stepped(self, process: Process) -> None:
        """A node took a step, whether anything changed or not: for who draws a history, too costly for a swarm."""

    def at_end(self) -> None:
        """Faults are over, everybody is back and in sync: look at everything."""

    def look_at_leader(self, node_id: int, topic: str, index: int) -> None:
        """Something was decided about a partition: look at the replica that leads it, where its node lives."""
        process = self.history.cluster.world.hosts[node_id].process
        led = process.node.replicas.partitions.get((topic, index)) if process is not None and process.alive else None
        if process is not None and led is not None:
            self.replica_changed(process, led)

    def violated(self, message: str) -> Violation:
        """The complaint of this checker."""
        return Violation(type(self).__name__, message)
