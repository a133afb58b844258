"""A history written down for a page: who lived and led when, what each replica held, how far it was committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidelog.replica.partition import Partition, Role
from tidelog.sim import swarm
from tidelog.sim.checkers import ALL, Checker, History
from tidelog.sim.machines import Process
from tidelog.sim.shape import Shape
from tidelog.sim.swarm import Outcome

SAMPLE_MS = 100
"""Offsets that only grow are noted this often; every other change at once."""
UP, DOWN, PAUSED, OFF = "up", "down", "paused", "not started"
LEADER, FOLLOWER, NOTHING = "leader", "follower", ""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica at a moment, as its own node has it."""

    role: str
    leader_epoch: int
    log_start: int
    log_end: int
    high_watermark: int
    epochs: tuple[tuple[int, int], ...]
    """Each epoch in its log and the offset it begins at."""
    isr: tuple[int, ...] = ()
    """Who is in sync, where it leads."""

    def is_only_further_than(self, other: ReplicaState) -> bool:
        """Whether nothing but offsets differs, and these have only grown."""
        same = ("role", "leader_epoch", "log_start", "epochs", "isr")
        return (
            all(getattr(self, name) == getattr(other, name) for name in same)
            and self.log_end >= other.log_end
            and self.high_watermark >= other.high_watermark
        )


@dataclass(slots=True)
class Recording:
    """Everything the page shows but for the trace. Times count from the beginning of the history."""

    nodes: tuple[int, ...] = ()
    begun_ms: int = 0
    lives: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """When each node changed to up, down or paused."""
    controllers: list[tuple[int, int, int]] = field(default_factory=list)
    """Since when a node has been the active controller: time, node, epoch."""
    replicas: dict[tuple[str, int], dict[int, list[tuple[int, ReplicaState]]]] = field(default_factory=dict)
    """By partition and node: what its replica was like from each moment on."""


class _Recorder(Checker):
    """Looks on as checkers do, and never complains."""

    recording: Recording

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._world = history.cluster.world
        self.recording.nodes = tuple(sorted(self._world.hosts))
        self.recording.begun_ms = self._world.now_ms
        for node_id in self.recording.nodes:
            self.recording.lives[node_id] = [(0, OFF)]
        self._latest: dict[tuple[str, int, int], tuple[int, ReplicaState]] = {}
        """What was seen last, noted or not."""

    def stepped(self, process: Process) -> None:
        """Look at the node that took a step, and at whether the others still live."""
        now_ms = self._world.now_ms - self.recording.begun_ms
        self._look_at_lives(now_ms)
        node_id = process.host.name
        cluster = process.node.cluster
        if cluster.controller is not None and cluster.controller.active:
            known = self.recording.controllers
            if not known or known[-1][1:] != (node_id, cluster.leader_epoch):
                known.append((now_ms, node_id, cluster.leader_epoch))
        for (topic, index), partition in process.node.replicas.partitions.items():
            self._look_at_replica(now_ms, (topic, index, node_id), partition)

    def _look_at_lives(self, now_ms: int) -> None:
        for node_id, changes in self.recording.lives.items():
            process = self._world.hosts[node_id].process
            if process is None:
                continue
            state = DOWN if not process.alive else PAUSED if process.paused else UP
            if changes[-1][1] != state:
                changes.append((now_ms, state))

    def _look_at_replica(self, now_ms: int, key: tuple[str, int, int], partition: Partition) -> None:
        leadership = partition.leadership
        log = partition.log
        state = ReplicaState(
            LEADER if leadership is not None else FOLLOWER if partition.role is Role.FOLLOWER else NOTHING,
            partition.leader_epoch,
            log.log_start_offset,
            log.log_end_offset,
            partition.high_watermark,
            tuple(log.epoch_history.entries),
            () if leadership is None else tuple(leadership.isr),
        )
        latest = self._latest.get(key)
        if latest is not None and latest[1] == state:
            return
        self._latest[key] = (now_ms, state)
        topic, index, node_id = key
        noted = self.recording.replicas.setdefault((topic, index), {}).setdefault(node_id, [])
        if not noted or not state.is_only_further_than(noted[-1][1]):
            if latest is not None and latest != noted[-1]:
                noted.append(latest)
            noted.append((now_ms, state))
        elif now_ms - noted[-1][0] >= SAMPLE_MS:
            noted.append((now_ms, state))

    def finish(self) -> None:
        """The last moment is kept as it was."""
        for (topic, index, node_id), latest in self._latest.items():
            noted = self.recording.replicas[topic, index][node_id]
            if noted[-1] != latest:
                noted.append(latest)


def record(seed: int, shape: Shape, checkers: Sequence[type[Checker]] = ALL) -> tuple[Outcome, Recording]:
    """Play a history and write it down; who looks on changes nothing, so its trace is the one of a plain run."""
    kept = Recording()
    made: list[_Recorder] = []

    class Recorder(_Recorder):
        recording = kept

        def __init__(self, history: History) -> None:
            super().__init__(history)
            made.append(self)

    # It looks before the checkers do, so that what they complain of is already written down.
    outcome = swarm.run(seed, (Recorder, *checkers), shape)
    made[0].finish()
    return outcome, kept
