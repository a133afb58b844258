"""Faults of disks: full, failing, slow, rotten, or gone.

Where a node has several log directories, each is on a disk of its own, and a fault hits one of them. The first has the
metadata as well: when it fails, its node gives up, as one with a single disk does. When another fails, the node goes on
without it (KIP-112), whatever else happens to it meanwhile, until it is started again with a disk that works; it may be
started while that disk still fails. What was not flushed on a disk whose failure its node knows of may be lost by then.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Protocol

from tidelog.errors import KafkaError
from tidelog.log import names
from tidelog.outbox import Chance
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.machines import Process
from tidelog.sim.shape import ROT_OF_WORK, Fault, Shape, pick
from tidelog.wire.batch import BatchHeader, iterate_batches

COVERED_FROM = 21
"""Where in a batch its checksum begins to look."""
SMALLEST_BATCH = 100
OPERATIONS = ("append", "flush", "read", "replace", "rename", "")
FOR_GOOD = "disk error for good"
AGAIN_MS = 100
"""When a node that something else is being done to is looked at again."""


class Hands(Protocol):
    """What is done to nodes besides."""

    is_over: bool
    """No faults any more."""

    def claim(self, node_id: int, *, loses_bytes: bool = False, keeps_metadata: bool = False) -> bool:
        """Have a node for oneself, if it lives, nobody else has it, and the budget allows it to lose bytes."""

    def give_back(self, node_id: int) -> None:
        """Let others have a node that was claimed."""

    def start(self, node_id: int) -> None:
        """Start a node that was claimed, if it is dead, and give it back."""

    def stop(self, node_id: int, away_ms: int, then: Callable[[], None]) -> None:
        """Stop a node that was claimed cleanly, start it after a while, and go on."""

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, unless faults are over by then."""


class DiskFaults:
    """Plays such faults on a cluster."""

    def __init__(self, cluster: SimulatedCluster, shape: Shape, hands: Hands, note: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._shape = shape
        self._hands = hands
        self._note = note
        self.failing_disks: dict[int, Fault] = {}
        """Nodes whose disk, or the one with their metadata, is full or fails: they may give up."""
        self.failing_directories: dict[int, Fault] = {}
        """Nodes of whose directories another one is full or fails: they must go on without it."""
        self.failing: Container[int] = ChainMap(self.failing_disks, self.failing_directories)
        self.rotten: dict[tuple[int, str, int], None] = {}
        """Replicas that rot has hit, by node, topic and partition: they may differ from the others."""

    def fill(self, fault: Fault) -> bool:
        """There is room for a few more batches; then writes fail until somebody makes room."""
        disk = self._take(fault)
        if disk is None:
            return False
        disk.capacity_bytes = disk.used_bytes + fault.amount % 2_000
        self._trouble(fault, disk)
        return True

    def fail(self, fault: Fault) -> bool:
        """Operations of a kind fail, once or until the disk is replaced; sometimes every one of them."""
        disk = self._take(fault)
        if disk is None:
            return False
        disk.fail(OPERATIONS[fault.amount % 6], times=1 if fault.amount % 4 == 0 else None)
        self._trouble(fault, disk)
        return True

    def slow(self, fault: Fault) -> bool:
        """Flushes take longer."""
        node_id, number = _node(fault), self.hit(fault)
        disks = self._world.hosts[node_id].disks
        disks[number].delay_ms = 20 + fault.amount % 500

        def quicken() -> None:
            disks[number].delay_ms = 0

        self._hands.later(fault.duration_ms, quicken)
        return True

    def rot(self, fault: Fault, keep: Callable[[int], None]) -> bool:
        """A bit of a batch that was flushed turns around; nobody knows before somebody reads it.

        Only of what a batch's checksum covers: Kafka's format cannot tell a wrong offset or epoch from a right one. Of
        the topics of groups and transactions a partition is drawn first: some have many files, and some have one.
        """
        node_id = _node(fault)
        is_of_work = fault.kind == ROT_OF_WORK
        if not self._hands.claim(node_id, loses_bytes=True, keeps_metadata=is_of_work):
            return False
        self._hands.give_back(node_id)
        chance = Chance(fault.amount)
        work = () if self._shape.work is None else self._shape.work.partitions
        found = [
            (disk, topic, index, path, size)
            for disk in self._world.hosts[node_id].disks
            for topic, index in (work if is_of_work else self._shape.consumers)
            for path, size in disk.flushed_files(names.directory_name(topic, index))
            if path.endswith(names.LOG_SUFFIX) and size > SMALLEST_BATCH and (node_id, topic, index) not in self.rotten
        ]
        if not found:
            return False
        if is_of_work:
            partition = pick(chance, list(dict.fromkeys(one[1:3] for one in found)))
            found = [one for one in found if one[1:3] == partition]
        disk, topic, index, path, size = pick(chance, found)
        batches = _whole_batches(disk.look_at(path)[:size])
        if not batches:
            return False
        batch = pick(chance, batches)
        covered = batch.size - COVERED_FROM
        disk.flip_bit(path, batch.position + COVERED_FROM + chance.below(covered), chance.below(8))
        self.rotten[node_id, topic, index] = None
        keep(node_id)
        self._note(f"a bit of {path} on node {node_id} turns around")
        return True

    def fail_for_good(self, node_id: int, disk: SimulatedDisk) -> None:
        """Nothing works any more on a disk that has no metadata; it has all its bytes, for which no budget is kept."""
        self.failing_directories[node_id] = Fault(0, FOR_GOOD, (node_id,), 0, (), 0)
        disk.fail()

    def heal(self, node_id: int) -> None:
        """Every disk of a node works again."""
        for disk in self._world.hosts[node_id].disks:
            disk.delay_ms = 0
            _mend(disk)

    def see_to(self, node_id: int) -> None:
        """A node is about to be started: whoever does has had its disks seen to that failed, or has not."""
        self.failing_disks.pop(node_id, None)
        fault = self.failing_directories.pop(node_id, None)
        if fault is None:
            return
        host = self._world.hosts[node_id]
        known = [] if host.process is None else _lost_roots(host.process)
        known = [one for one in known if one != host.disks[0].root]  # without that it could not start
        if known and not self._hands.is_over and self._world.chance.below(3) == 0:
            self._note(f"node {node_id} starts without {', '.join(known)}")
            self.failing_directories[node_id] = fault
            for disk in [one for one in host.disks if one.root in known]:
                disk.heal()
                disk.fail(OPERATIONS[self._world.chance.below(6)])
            return
        for disk in host.disks[1:]:
            _mend(disk)
            if fault.kind != FOR_GOOD and disk.root in known and self._world.chance.below(3):
                self._note(f"disk {disk.root} of node {node_id} has lost what was not flushed")
                disk.power_loss(self._world.chance)

    def lacks_a_directory(self, node_id: int) -> bool:
        """Whether a node lives, and must be started again to have all its directories."""
        process = self._world.hosts[node_id].process
        return (
            node_id in self.failing_directories and process is not None and process.alive and bool(_lost_roots(process))
        )

    def hit(self, fault: Fault) -> int:
        """Which of the disks of its node a fault hits; that of the metadata less often, which ends the node."""
        count = len(self._world.hosts[_node(fault)].disks)
        drawn = Chance(fault.amount * 2 + 1).below(count * 3) if count > 1 else 0
        return 1 + drawn % (count - 1) if drawn else 0

    # --- a disk in trouble ---

    def _take(self, fault: Fault) -> SimulatedDisk | None:
        """The disk that a fault hits, where its node may be had; it stays claimed when the node may give up."""
        node_id, number = _node(fault), self.hit(fault)
        if number and (node_id in self.failing_directories or not self._has_started(node_id)):
            return None
        if not self._hands.claim(node_id, loses_bytes=True, keeps_metadata=number > 0):
            return None
        if number:
            self._hands.give_back(node_id)
        return self._world.hosts[node_id].disks[number]

    def _has_started(self, node_id: int) -> bool:
        """Whether a node is through with what needs all of its directories."""
        process = self._world.hosts[node_id].process
        return process is not None and process.node.lifecycle.broker_epoch >= 0

    def _trouble(self, fault: Fault, disk: SimulatedDisk) -> None:
        node_id = _node(fault)
        number = self._world.hosts[node_id].disks.index(disk)
        if number:
            self.failing_directories[node_id] = fault
            self._note(f"it is disk {disk.root} of node {node_id}")
            self._hands.later(fault.duration_ms, lambda: self._bring_back(fault, disk))
            return
        self.failing_disks[node_id] = fault

        def mend() -> None:
            # A node whose disk fails ends itself, at once or later; when the disk works again it is started.
            if len(self._world.hosts[node_id].disks) > 1:
                _mend(self._world.hosts[node_id].disks[0])
            else:
                self.heal(node_id)
            self._hands.start(node_id)
            self._hands.later(50, forget)

        def forget() -> None:
            if self.failing_disks.get(node_id) is fault:  # else the next one has begun
                del self.failing_disks[node_id]

        self._hands.later(fault.duration_ms, mend)

    def _bring_back(self, fault: Fault, disk: SimulatedDisk) -> None:
        """The disk works again; a node that has given it up is started again, to have it back."""
        node_id = _node(fault)
        process = self._world.hosts[node_id].process
        if self.failing_directories.get(node_id) is not fault or process is None or not process.alive:
            return  # it was started again meanwhile, or will be by whoever killed it
        if not self._hands.claim(node_id):
            self._hands.later(AGAIN_MS, lambda: self._bring_back(fault, disk))
            return
        _mend(disk)
        if not _lost_roots(process):
            self._hands.give_back(node_id)
            del self.failing_directories[node_id]
        elif fault.amount % 3 == 0:
            self._note(f"restart {node_id}, to have its directory back")
            self._hands.stop(node_id, 100, lambda: None)
        else:
            self._note(f"kill {node_id}, to have its directory back")
            self._world.kill(node_id)
            self._hands.later(100, lambda: self._hands.start(node_id))


def _node(fault: Fault) -> int:
    node_id = fault.places[0]
    assert isinstance(node_id, int)
    return node_id


def _mend(disk: SimulatedDisk) -> None:
    disk.capacity_bytes = None
    disk.heal()


def _lost_roots(process: Process) -> list[str]:
    """The directories that a node, alive or dead, has given up."""
    return [one.storage.root for one in process.node.replicas.directories if not one.online]


def _whole_batches(data: bytes) -> list[BatchHeader]:
    """The batches of a file up to its end, or to where a power loss has torn it: nobody may have cut it there yet."""
    found: list[BatchHeader] = []
    with suppress(KafkaError):
        found.extend(iterate_batches(data, allow_partial=True))
    return found
