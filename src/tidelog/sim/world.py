"""A world for real nodes: simulated time, network, disks, clocks and processes, decided by one seed.

The nodes are the shipped ones; only their outside is made up. Everything that happens is an entry of one queue, so a
seed has one history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidelog.effects import Close, Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.events import Event, FlushDone, StopRequested, Tick
from tidelog.sim.clock import Clock
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.sim.jobs import Jobs
from tidelog.sim.machines import Host, Process
from tidelog.sim.wires import Wires

LATE_ODDS = 8
"""Of so many flushes one is told of a while after it is done, so that a node may die or write in between."""


class _Flushes:
    """What one life of a node has asked of a disk."""

    __slots__ = ("done_at_ms", "told_at_ms", "untold")

    def __init__(self) -> None:
        self.done_at_ms = 0
        """When the last of them is done."""
        self.told_at_ms = 0
        self.untold = 0
        """Done, and not told yet."""


class World(Wires):
    """Hosts whose processes live and die, take steps, and have carried out what they want."""

    def __init__(self, seed: int, start_ms: int = 1_700_000_000_000) -> None:
        super().__init__(seed, start_ms)
        self.jobs = Jobs(self)
        self.told: list[tuple[int, int, Tell]] = []
        """Everything the nodes told people: time, node, event."""
        self.halts: list[tuple[int, int]] = []
        """Nodes that ended themselves, with their exit codes."""
        self.on_step: Callable[[Process], None] | None = None
        """Looks at a node after each of its steps; it must change nothing."""
        self.on_end: Callable[[Process], None] | None = None
        """Looks at what a node told in a step that it did not outlive, before anybody can start it again."""
        self.steps = 0
        self._flushes: dict[tuple[Process, SimulatedDisk], _Flushes] = {}

    def add_host(self, host: Host) -> None:
        """Put a machine into the world; its process is started by `start`."""
        host.clock = Clock(self.now_ms)
        self.hosts[host.name] = host

    def start(self, name: int) -> Process:
        """Start a host's node on whatever its disks hold."""
        host = self.hosts[name]
        former = host.process
        assert former is None or not former.alive, f"node {name} is already running"
        if former is not None:
            self._drop_connections(former)  # a machine that is back resets what it knows nothing of
        process = Process(host)
        host.process = process
        with self.power(process):
            boot_id = f"boot {host.boots} of {name}"
            process.node = host.make_node(host.disks, self.chance.bits64(), host.clock.read(self.now_ms), boot_id)
            self._schedule_tick(process)
        return process

    def stop(self, name: int) -> None:
        """Ask for a clean stop, as SIGTERM does."""
        process = self.hosts[name].process
        if process is not None:
            self.step(process, StopRequested())

    def kill(self, name: int) -> None:
        """As kill -9: the process is gone and the kernel closes its connections; the page cache stays."""
        self.jobs.cut_short(self.hosts[name].process)
        self._die(name)
        for disk in self.hosts[name].disks:
            disk.kill()

    def power_loss(self, name: int) -> None:
        """The machine loses power: what was not flushed is lost or torn, and nobody is told that it is gone."""
        process = self.hosts[name].process
        self.jobs.cut_short(process)
        if process is not None:
            process.alive = False
        self.hosts[name].boots += 1
        for disk in self.hosts[name].disks:
            disk.power_loss(self.chance)

    def pause(self, name: int) -> None:
        """As SIGSTOP: it does nothing, its connections stay open, what is sent to it waits in its machine."""
        process = self.hosts[name].process
        assert process is not None
        assert process.alive, f"node {name} is not running"
        process.paused = True

    def resume(self, name: int) -> None:
        """As SIGCONT: it goes on with what has come in meanwhile, in its order."""
        process = self.hosts[name].process
        if process is None or not process.paused:
            return
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for event in [*backlog, Tick()]:
            self.at(self.now_ms, lambda event=event: self.step(process, event))  # type: ignore[misc]

    def _die(self, name: int, exit_code: int | None = None) -> None:
        process = self.hosts[name].process
        if process is None or not process.alive:
            return
        process.alive = False
        process.exit_code = exit_code
        if not self.may_send_on or self.chance.below(2):
            self.network.forget(name)
        self._drop_connections(process)

    def _drop_connections(self, process: Process) -> None:
        for connection in [*process.connections.values(), *process.peers.values()]:
            self.close(connection, by=process)

    def step(self, process: Process, event: Event) -> None:
        """Give an event to a living node and carry out what it wants."""
        if not process.alive:
            return
        if process.paused:
            if not isinstance(event, Tick):
                process.backlog.append(event)
            return
        self.steps += 1
        host = process.host
        local_ms = host.clock.read(self.now_ms)
        for disk in host.disks:
            disk.now_ms = local_ms
        try:
            for effect in process.node.step(event, local_ms):
                if process.alive:
                    self._carry_out(process, effect)
            if process.alive:
                self._schedule_tick(process)
        except PowerCut:  # as `power` has it, which costs more than many a step
            self.power_loss(host.name)
        look = self.on_step if process.alive else self.on_end
        if look is not None:
            look(process)

    @contextmanager
    def power(self, process: Process) -> Iterator[None]:
        """Where a disk was told to lose power at a write, the whole machine goes with it."""
        try:
            yield
        except PowerCut:
            self.power_loss(process.host.name)

    def _schedule_tick(self, process: Process) -> None:
        due_ms = process.node.outbox.wake_at_ms
        if due_ms is None:
            return
        wake_at_ms = process.host.clock.when(due_ms)
        if process.tick_at_ms is not None and process.tick_at_ms <= wake_at_ms:
            return
        process.tick_at_ms = wake_at_ms

        def tick() -> None:
            if process.tick_at_ms == wake_at_ms:
                process.tick_at_ms = None
                self.step(process, Tick())

        self.at(wake_at_ms, tick)

    # --- effects ---

    def _carry_out(self, process: Process, effect: Effect) -> None:
        match effect:
            case Reply():
                self._reply(process, effect)
            case Send():
                self._send(process, effect)
            case Flush():
                self._flush(process, effect)
            case Work():
                self.jobs.take(process, effect)
            case Close():
                connection = process.connections.get(effect.connection_id)
                if connection is not None:
                    self.close(connection, by=process)
            case Tell():
                self.told.append((self.now_ms, process.host.name, effect))
            case Halt():
                self.halts.append((process.host.name, effect.exit_code))
                self._die(process.host.name, effect.exit_code)
                for disk in process.host.disks:
                    disk.kill()

    def _flush(self, process: Process, effect: Flush) -> None:
        """Carry out a flush after a drawn delay and tell of it, at once or a little later; never to one that died.

        As in the runtime, a disk does what it is asked for one after the other, and tells of it in that order.
        """
        disk = self._disk_of(effect)
        queue = self._flushes.setdefault((process, disk), _Flushes())
        flush = disk.start_flush(effect)

        def carry_out() -> None:
            if not process.alive:
                return
            with self.power(process):
                done = FlushDone(effect.token, flush.finish())
                is_late = not self.chance.below(LATE_ODDS)
                if not is_late and not queue.untold:
                    self.step(process, done)
                    return
                queue.told_at_ms = max(queue.told_at_ms, self.now_ms + (self._delay_ms() if is_late else 0))
                queue.untold += 1
                self.at(queue.told_at_ms, lambda: tell(done))

        def tell(done: FlushDone) -> None:
            queue.untold -= 1
            with self.power(process):
                self.step(process, done)

        queue.done_at_ms = max(queue.done_at_ms, self.now_ms + self._delay_ms() + disk.delay_ms)
        self.at(queue.done_at_ms, carry_out)

    @staticmethod
    def _disk_of(effect: Flush) -> SimulatedDisk:
        disk = effect.storage
        assert isinstance(disk, SimulatedDisk)
        return disk
