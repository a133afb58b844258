"""A world for real nodes: simulated time, links, disks and processes, decided by one seed.

The nodes are the shipped ones; only their outside is made up. Everything that happens is an entry of one queue, ordered
by time and then by the order it was put there, so a seed has one history. Links keep order, as TCP does; a slice is
read when its bytes leave, not when the step that made it returns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidelog.effects import Close, Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.events import ConnectionClosed, Event, FlushDone, PeerAnswered, PeerFailed, Request, Tick, WorkDone
from tidelog.node import Node
from tidelog.outbox import Chance
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.storage import Slice
from tidelog.wire import frames

Address = tuple[str, int]
Answered = Callable[[Any], None]
"""Called with the response, or with None when the connection ended first."""


class Link:
    """A connection's one direction: delivers in order, each thing after a drawn delay."""

    __slots__ = ("last_at_ms", "open")

    def __init__(self) -> None:
        self.last_at_ms = 0
        self.open = True


class Connection:
    """A client's or a peer's connection to one process of a node; gone when either end dies."""

    __slots__ = ("answered", "connection_id", "listener", "next_slot", "process", "to_client", "to_node")

    def __init__(self, connection_id: int, process: Process, listener: str) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.process = process
        self.to_node = Link()
        self.to_client = Link()
        self.next_slot = 0
        self.answered: dict[int, tuple[int, int, Answered]] = {}
        """API, version and continuation of each request under way, by slot."""


class Process:
    """One life of a node, from its start to its death."""

    __slots__ = ("alive", "connections", "exit_code", "host", "node", "peers", "tick_at_ms")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.node: Node
        self.alive = True
        self.exit_code: int | None = None
        self.connections: dict[int, Connection] = {}
        self.peers: dict[tuple[int, str], Connection] = {}
        self.tick_at_ms: int | None = None


class Host:
    """A machine: disks that outlive processes, addresses, and a way to make its node again."""

    __slots__ = ("addresses", "disks", "make_node", "name", "process")

    def __init__(
        self,
        name: int,
        disks: Sequence[SimulatedDisk],
        addresses: Mapping[Address, str],
        make_node: Callable[[Sequence[SimulatedDisk], int, int], Node],
    ) -> None:
        self.name = name
        self.disks = list(disks)
        self.addresses = dict(addresses)
        """Where it listens, with the name of each listener."""
        self.make_node = make_node
        """From the disks, a seed and the time."""
        self.process: Process | None = None


class World:
    """Hosts, links between them, and the queue of what is to happen."""

    def __init__(self, seed: int, start_ms: int = 1_700_000_000_000) -> None:
        self.chance = Chance(seed)
        self.now_ms = start_ms
        self.hosts: dict[int, Host] = {}
        self.told: list[tuple[int, int, Tell]] = []
        """Everything the nodes told people: time, node, event."""
        self.least_delay_ms = 0
        self.most_delay_ms = 2
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._next_number = 1

    # --- the queue ---

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Put something into the queue."""
        heapq.heappush(self._queue, (max(at_ms, self.now_ms), self._number(), action))

    def run_until(self, condition: Callable[[], bool], within_ms: int = 60_000) -> bool:
        """Let things happen until the condition holds; False when it did not within the time."""
        deadline_ms = self.now_ms + within_ms
        while not condition():
            if not self._queue or self._queue[0][0] > deadline_ms:
                self.now_ms = max(self.now_ms, deadline_ms)
                return condition()
            at_ms, _, action = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, at_ms)
            action()
        return True

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration_ms)

    # --- hosts and processes ---

    def add_host(self, host: Host) -> None:
        """Put a machine into the world; its process is started by `start`."""
        self.hosts[host.name] = host

    def start(self, name: int) -> Process:
        """Start a host's node on whatever its disks hold."""
        host = self.hosts[name]
        assert host.process is None or not host.process.alive, f"node {name} is already running"
        process = Process(host)
        host.process = process
        with self._power(process):
            process.node = host.make_node(host.disks, self.chance.bits64(), self.now_ms)
            self._schedule_tick(process)
        return process

    def kill(self, name: int) -> None:
        """As kill -9: the process is gone, the page cache stays."""
        self._die(name)
        for disk in self.hosts[name].disks:
            disk.kill()

    def power_loss(self, name: int) -> None:
        """The machine loses power: what was not flushed is lost or torn."""
        self._die(name)
        for disk in self.hosts[name].disks:
            disk.power_loss(self.chance)

    def _die(self, name: int, exit_code: int | None = None) -> None:
        process = self.hosts[name].process
        if process is None or not process.alive:
            return
        process.alive = False
        process.exit_code = exit_code
        for connection in list(process.connections.values()):
            self._break(connection)
        for connection in list(process.peers.values()):
            self._break(connection)

    def step(self, process: Process, event: Event) -> None:
        """Give an event to a living node and carry out what it wants."""
        if not process.alive:
            return
        with self._power(process):
            for effect in process.node.step(event, self.now_ms):
                if process.alive:
                    self._carry_out(process, effect)
            if process.alive:
                self._schedule_tick(process)

    @contextmanager
    def _power(self, process: Process) -> Iterator[None]:
        """Where a disk was told to lose power at a write, the whole machine goes with it."""
        try:
            yield
        except PowerCut:
            self.power_loss(process.host.name)

    def _schedule_tick(self, process: Process) -> None:
        wake_at_ms = process.node.wake_at_ms
        if wake_at_ms is None or (process.tick_at_ms is not None and process.tick_at_ms <= wake_at_ms):
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
                flush = self._disk_of(effect).start_flush(effect)
                self._later(process, lambda: FlushDone(effect.token, flush.finish()))
            case Work():
                self._later(process, lambda: self._work(effect))
            case Close():
                connection = process.connections.get(effect.connection_id)
                if connection is not None:
                    self._break(connection)
            case Tell():
                self.told.append((self.now_ms, process.host.name, effect))
            case Halt():
                self._die(process.host.name, effect.exit_code)
                for disk in process.host.disks:
                    disk.kill()

    def _later(self, process: Process, outcome: Callable[[], Event]) -> None:
        """The outcome happens, and is told, after a drawn delay; never when the process died meanwhile."""

        def happen() -> None:
            if process.alive:
                with self._power(process):
                    self.step(process, outcome())

        self.at(self.now_ms + self._delay_ms(), happen)

    @staticmethod
    def _disk_of(effect: Flush) -> SimulatedDisk:
        disk = effect.storage
        assert isinstance(disk, SimulatedDisk)
        return disk

    @staticmethod
    def _work(effect: Work) -> WorkDone:
        try:
            return WorkDone(effect.token, effect.job(effect.storage, *effect.arguments))
        except Exception as error:  # as the helper process of the real runtime reports any failure of a job
            return WorkDone(effect.token, None, str(error))

    # --- connections ---

    def connect(self, name: int, listener: str = "PLAINTEXT") -> Connection | None:
        """Somebody connects; None when nobody listens."""
        process = self.hosts[name].process
        if process is None or not process.alive:
            return None
        connection = Connection(self._number(), process, listener)
        process.connections[connection.connection_id] = connection
        return connection

    def request(self, connection: Connection, api_key: int, api_version: int, body: Any, answered: Answered) -> None:
        """Send a request; `answered` is called exactly once."""
        if not connection.to_node.open:
            answered(None)
            return
        slot = connection.next_slot
        connection.next_slot += 1
        connection.answered[slot] = (api_key, api_version, answered)
        frame = b"".join(self._bytes(frames.encode_request(api_key, api_version, slot, "sim", body)))

        def arrive() -> None:
            decoded = frames.decode_request(memoryview(bytearray(frame[4:])), connection.process.node.api_versions)
            event = Request(
                connection.connection_id, slot, api_key, api_version, "sim", decoded.body, "sim", connection.listener
            )
            self.step(connection.process, event)

        self._deliver(connection.to_node, arrive)

    def _reply(self, process: Process, effect: Reply) -> None:
        connection = process.connections.get(effect.connection_id)
        if connection is None or effect.slot not in connection.answered:
            return
        api_key, api_version, _ = connection.answered[effect.slot]

        def leave() -> None:
            """The bytes leave the node: this is when slices are read, and found to be cut."""
            body = effect.body
            if body is not None:
                try:
                    frame = b"".join(self._bytes(frames.encode_response(api_key, api_version, effect.slot, body)))
                except ConnectionAbortedError:
                    self._break(connection)
                    return
                _, body = frames.decode_response(api_key, api_version, memoryview(frame)[4:])
            self._deliver(connection.to_client, lambda: self._answer(connection, effect.slot, body))

        self._deliver(connection.to_client, leave)

    @staticmethod
    def _bytes(parts: Sequence[bytes | Slice]) -> list[bytes]:
        pieces = []
        for part in parts:
            if isinstance(part, Slice):
                if not part.valid:
                    raise ConnectionAbortedError("the log was cut under a slice")
                pieces.append(part.read())
            else:
                pieces.append(part)
        return pieces

    @staticmethod
    def _answer(connection: Connection, slot: int, body: Any) -> None:
        waiting = connection.answered.pop(slot, None)
        if waiting is not None:
            waiting[2](body)

    def _send(self, process: Process, effect: Send) -> None:
        """A node asks a peer, over one connection a (peer, channel)."""

        def answered(body: Any) -> None:
            if not process.alive:
                return
            if body is None:
                self.step(process, PeerFailed(effect.peer_id, effect.request_id, "connection lost"))
            else:
                self.step(process, PeerAnswered(effect.peer_id, effect.request_id, body))

        key = (effect.peer_id, effect.channel)
        connection = process.peers.get(key)
        if connection is None or not connection.to_node.open:
            address = (effect.host, effect.port)
            target = next((one for one in self.hosts.values() if address in one.addresses), None)
            connection = None if target is None else self.connect(target.name, target.addresses[address])
            if connection is None:
                self._later(process, lambda: PeerFailed(effect.peer_id, effect.request_id, "connection refused"))
                return
            process.peers[key] = connection
        self.request(connection, effect.api_key, effect.api_version, effect.body, answered)

    def _deliver(self, link: Link, action: Callable[[], None]) -> None:
        link.last_at_ms = max(link.last_at_ms, self.now_ms + self._delay_ms())

        def arrive() -> None:
            if link.open:
                action()

        self.at(link.last_at_ms, arrive)

    def _break(self, connection: Connection) -> None:
        """Both ends see the connection end; what was in flight is lost."""
        if not connection.to_node.open:
            return
        connection.to_node.open = connection.to_client.open = False
        process = connection.process
        process.connections.pop(connection.connection_id, None)
        waiting, connection.answered = connection.answered, {}
        for _, _, answered in waiting.values():
            self.at(self.now_ms + self._delay_ms(), lambda answered=answered: answered(None))  # type: ignore[misc]
        closed = ConnectionClosed(connection.connection_id, "connection lost", by_peer=True)
        self.at(self.now_ms, lambda: self.step(process, closed))

    # --- small things ---

    def _delay_ms(self) -> int:
        return self.least_delay_ms + self.chance.below(self.most_delay_ms - self.least_delay_ms + 1)

    def _number(self) -> int:
        number = self._next_number
        self._next_number = number + 1
        return number
