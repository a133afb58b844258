"""One replica on a machine of its own: a disk that outlives the processes on it, and who listens to the quorum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.effects import Flush, Halt, Reply, Send, Tell
from tidelog.outbox import Outbox
from tidelog.quorum import CommittedBatch, Identity, LoadedSnapshot, Quorum, ReplicaKey, RoleName
from tidelog.quorum.batches import controls_of, records_of
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.records.config_record import ConfigRecord

if TYPE_CHECKING:
    from tests.quorum.world import World

LISTENER = "CONTROLLER"
CLUSTER = "a-cluster"


def address(node_id: int) -> tuple[str, int]:
    return f"host{node_id}", 9000 + node_id


def directory_id(node_id: int, incarnation: int = 0) -> bytes:
    return bytes([0x40 + incarnation]) * 15 + bytes([node_id])


def record(key: str, value: str) -> tuple[ConfigRecord, int]:
    return ConfigRecord(resource_type=2, resource_name=key, name="n", value=value), 0


class Recorder:
    """The listener of one life of a node: keeps the state that the committed records make."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.state: dict[str, str] = {}
        self.next_offset = 0
        self.activated_epoch: int | None = None
        self.last_timestamp_ms = 0

    def on_committed(self, batch: CommittedBatch) -> None:
        assert batch.base_offset == self.next_offset, "told of offsets out of order"
        for index, message in enumerate(batch.records):
            assert isinstance(message, ConfigRecord)
            self.state[message.resource_name] = str(message.value)
            self.node.world.committed(self.node, batch.base_offset + index, batch.epoch, message)
        self.next_offset = batch.last_offset + 1
        self.node.world.committed_end_offset = max(self.node.world.committed_end_offset, self.next_offset)
        self.last_timestamp_ms = batch.timestamp_ms

    def on_snapshot_loaded(self, snapshot: LoadedSnapshot) -> None:
        assert snapshot.end_offset >= self.next_offset
        self.state = {message.resource_name: str(message.value) for message in snapshot.records}  # type: ignore[attr-defined]
        self.next_offset = snapshot.end_offset
        self.node.world.snapshot_loaded(self.node, snapshot.end_offset, self.state)
        if snapshot.end_offset:
            self.node.world.say(f"{self.node.id} loads snapshot {snapshot.end_offset}-{snapshot.epoch}")

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        pass

    def on_activated(self, epoch: int) -> None:
        self.activated_epoch = epoch
        self.node.world.activated(self.node, epoch)

    def on_resigned(self) -> None:
        self.activated_epoch = None


class Node:
    """A machine: its disk outlives the process on it."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.id = node_id
        self.directory_id = directory_id(node_id)
        self.host = address(node_id)[0]
        self.disk = SimulatedDisk(f"disk{node_id}")
        self.life = 0
        self.outbox: Outbox
        self.quorum: Quorum
        self.listener: Recorder
        self.up = False
        self.halted: str | None = None
        self.paused = False
        self.held: list[Callable[[], None]] = []
        """What happened to it while it was paused."""
        self.flush_delay_ms: tuple[int, int] | None = None
        """Where its disk is slower than the others'."""
        self._woken_at: int | None = None
        self._last: tuple[RoleName, int] | None = None

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    def start(self) -> None:
        self.life += 1
        self.outbox = Outbox(self.world.seed * 1000 + self.id * 100 + self.life)
        self.outbox.now_ms = self.disk.now_ms = self.world.now_ms
        self.listener = Recorder(self)
        static = self.world.static_voters
        identity = Identity(
            cluster_id=CLUSTER,
            node_id=self.id,
            directory_id=self.directory_id,
            listener=LISTENER,
            endpoints={LISTENER: (self.host, address(self.id)[1])} if self.id not in self.world.broker_ids else None,
            static_voters=static,
            bootstrap_servers=tuple(address(node_id) for node_id in self.world.bootstrap_ids),
        )
        self.up, self.halted, self._last, self._woken_at = True, None, None, None
        self.quorum = Quorum(self.outbox, self.disk, self.listener, identity, self.world.settings)
        self.step(self.quorum.start)

    def stop(self) -> None:
        self.up = False
        self.held.clear()

    def resume(self) -> None:
        self.paused = False
        held, self.held = self.held, []
        for action in held:
            self.world.at(self.world.now_ms, action)

    def step(self, action: Callable[[], Any]) -> None:
        """One step of the node: an event, due timers, then its effects."""
        if not self.up or self.halted:
            return
        self.outbox.now_ms = self.disk.now_ms = self.world.now_ms
        action()
        self.outbox.run_due_timers()
        for effect in self.outbox.take_effects():
            self._carry_out(effect)
        self._show_role()
        self._arm()
        self.world.stepped(self)

    def _arm(self) -> None:
        wake_at = self.outbox.wake_at_ms
        if wake_at is not None and (
            self._woken_at is None or wake_at < self._woken_at or self._woken_at <= self.world.now_ms
        ):
            self._woken_at = wake_at
            life = self.life
            self.world.at(wake_at, lambda: self._tick(life))

    def _tick(self, life: int) -> None:
        if self.life == life and self.up:
            if self.paused:
                self.held.append(lambda: self._tick(life))
                return
            self._woken_at = None
            self.step(lambda: None)

    def _show_role(self) -> None:
        shown = (self.quorum.role, self.quorum.epoch)
        if shown != self._last:
            self._last = shown
            self.world.role_changed(self)

    def _carry_out(self, effect: Any) -> None:
        life = self.life
        if isinstance(effect, Flush):
            flush = self.disk.start_flush(effect)

            def flushed() -> None:
                if self.life == life and self.up:
                    if self.paused:
                        self.held.append(flushed)
                        return
                    error = flush.finish()
                    self.step(lambda: self.outbox.resume(effect.token, error))

            self.world.at(self.world.now_ms + self.world.flush_ms(self), flushed)
        elif isinstance(effect, Send):
            self.world.send(self, effect)
        elif isinstance(effect, Reply):
            self.world.reply(self, effect)
        elif isinstance(effect, Tell):
            self.world.told(self, effect)
        elif isinstance(effect, Halt):
            self.halted = effect.reason
            self.world.say(f"{self.id} halts: {effect.reason}")

    def log(self) -> list[tuple[int, str]]:
        """Epoch and content of each record in the log, by offset from its start."""
        entries: list[tuple[int, str]] = []
        core = self.quorum._core
        for batch in core.log.batches(core.log.start_offset, core.log.end_offset):
            if batch.is_control:
                names = {"LeaderChangeMessage": "leader", "KRaftVersionRecord": "version", "VotersRecord": "voters"}
                entries += [
                    (batch.partition_leader_epoch, names[type(control).__name__]) for _, control in controls_of(batch)
                ]
            else:
                entries += [(batch.partition_leader_epoch, f"{r.resource_name}={r.value}") for r in records_of(batch)]  # type: ignore[attr-defined]
        return entries
