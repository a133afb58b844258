"""A world for real nodes: simulated time, network, disks, clocks and processes, decided by one seed.

The nodes are the shipped ones; only their outside is made up. Everything that happens is an entry of one queue, ordered
by time and then by the order it was put there, so a seed has one history. Connections keep order, as TCP does; a slice
is read when its bytes leave, not when the step that made it returns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tidelog.effects import Close, Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.errors import StorageError
from tidelog.events import (
    CONNECTION_REFUSED,
    ConnectionClosed,
    Event,
    FlushDone,
    PeerAnswered,
    PeerFailed,
    Request,
    StopRequested,
    Tick,
)
from tidelog.outbox import Chance
from tidelog.sim.clock import Clock
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.sim.jobs import Jobs
from tidelog.sim.machines import Host, Process
from tidelog.sim.network import CONTROL, DATA, Connection, Link, Message, Network, Place
from tidelog.sim.passing import pass_request, pass_response, record_bytes

Answered = Callable[[Any], None]
"""Called with the response, or with None when the connection ended first."""
UNREAD = Message("", "", -1, -1, None, is_request=False)
"""Stands for any message where nobody reads them."""
CONNECT_TIMEOUT_MS = 2000
"""As the runtime's: how long a node tries to reach a peer that does not answer."""


class World:
    """Hosts, the network between them, and the queue of what is to happen."""

    def __init__(self, seed: int, start_ms: int = 1_700_000_000_000) -> None:
        self.chance = Chance(seed)
        self.now_ms = start_ms
        self.hosts: dict[int, Host] = {}
        self.network = Network()
        self.jobs = Jobs(self)
        self.told: list[tuple[int, int, Tell]] = []
        """Everything the nodes told people: time, node, event."""
        self.halts: list[tuple[int, int]] = []
        """Nodes that ended themselves, with their exit codes."""
        self.on_message: Callable[[Message], None] | None = None
        """Sees every message between nodes, and between clients and nodes, as it arrives."""
        self.on_step: Callable[[Process], None] | None = None
        """Looks at a node after each of its steps; it must change nothing."""
        self.through_bytes = True
        """Whether messages are encoded and decoded on their way, as on a wire."""
        self.has_narrow_sockets = False
        """Whether answers whose way is closed wait in the node that sends them, slices unread, as where sockets have no
        room for more; else they are on their way already."""
        self.torn_answers: list[tuple[int, Place]] = []
        """From whom to whom answers went that had other bytes when they left than when they were given."""
        self.least_delay_ms = 0
        self.most_delay_ms = 2
        self.steps = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._next_number = 1

    # --- the queue ---

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Put something into the queue."""
        number = self._next_number
        self._next_number = number + 1
        heapq.heappush(self._queue, (max(self.now_ms, at_ms), number, action))

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
        deadline_ms = self.now_ms + duration_ms
        queue, pop = self._queue, heapq.heappop
        while queue and queue[0][0] <= deadline_ms:
            self.now_ms, _, action = pop(queue)
            action()
        self.now_ms = max(self.now_ms, deadline_ms)

    # --- hosts and processes ---

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
        if self.on_step is not None and process.alive:
            self.on_step(process)

    @contextmanager
    def power(self, process: Process) -> Iterator[None]:
        """Where a disk was told to lose power at a write, the whole machine goes with it."""
        try:
            yield
        except PowerCut:
            self.power_loss(process.host.name)

    def _schedule_tick(self, process: Process) -> None:
        wake_at_ms = process.node.wake_at_ms
        if wake_at_ms is None:
            return
        wake_at_ms = process.host.clock.when(wake_at_ms)
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
                flush = self._disk_of(effect).start_flush(effect)
                delay_ms = process.host.disk_delay_ms
                self._later(process, lambda: FlushDone(effect.token, flush.finish()), delay_ms)
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

    def _later(self, process: Process, outcome: Callable[[], Event], delay_ms: int = 0) -> None:
        """The outcome happens, and is told, after a drawn delay; never when the process died meanwhile."""

        def happen() -> None:
            if process.alive:
                with self.power(process):
                    self.step(process, outcome())

        self.at(self.now_ms + self._delay_ms() + delay_ms, happen)

    @staticmethod
    def _disk_of(effect: Flush) -> SimulatedDisk:
        disk = effect.storage
        assert isinstance(disk, SimulatedDisk)
        return disk

    # --- connections ---

    def connect(
        self, name: int, listener: str = "PLAINTEXT", source: Place = "client", owner: Process | None = None
    ) -> Connection | None:
        """Somebody connects; None when nobody listens there."""
        host = self.hosts[name]
        process = host.process
        if process is None or not process.alive:
            return None
        kind = CONTROL if listener in host.control_listeners else DATA
        connection = Connection(self._number(), source, owner, process, listener, kind)
        process.connections[connection.connection_id] = connection
        return connection

    def is_cut(self, source: Place, name: int, listener: str = "PLAINTEXT") -> bool:
        """Whether no connection can be made from a place to a node, because the network between them is cut."""
        return self.network.is_cut(source, name, CONTROL if listener in self.hosts[name].control_listeners else DATA)

    def request(
        self,
        connection: Connection,
        api_key: int,
        api_version: int,
        body: Any,
        answered: Answered,
        timeout_ms: int | None = None,
    ) -> None:
        """Send a request; `answered` is called exactly once. Past its time the whole connection is closed."""
        if not connection.is_open:
            answered(None)
            return
        slot = connection.next_slot
        connection.next_slot += 1
        connection.answered[slot] = (api_key, api_version, answered)
        if timeout_ms is not None:
            connection.deadlines[slot] = self.now_ms + timeout_ms
            self._watch_deadlines(connection)
        supported = connection.process.node.api_versions
        body = pass_request(api_key, api_version, body, supported, through_bytes=self.through_bytes)

        def arrive() -> None:
            event = Request(
                connection.connection_id, slot, api_key, api_version, "sim", body, "sim", connection.listener
            )
            self.step(connection.process, event)

        message = UNREAD
        if self.on_message is not None:
            source, target, _ = connection.to_node.key
            message = Message(source, target, api_key, api_version, body, is_request=True)
        self._deliver(connection.to_node, arrive, message)

    def _reply(self, process: Process, effect: Reply) -> None:
        connection = process.connections.get(effect.connection_id)
        if connection is None:
            return
        if effect.slot == connection.next_reply and not connection.replies:
            connection.next_reply += 1
            self._leave(connection, effect.slot, effect.body)
            return
        connection.replies[effect.slot] = effect.body
        while connection.next_reply in connection.replies:
            slot = connection.next_reply
            connection.next_reply += 1
            self._leave(connection, slot, connection.replies.pop(slot))

    def _leave(self, connection: Connection, slot: int, body: Any) -> None:
        """Send an answer; the bytes leave a moment later, and that is when slices are read, and found to be cut."""
        if slot not in connection.answered:
            return
        api_key, api_version, _ = connection.answered[slot]
        promised: bytes | None = None

        def leave() -> None:
            nonlocal promised
            route = self.network.get(link.key) if self.has_narrow_sockets else None
            if route is not None and not route.is_open:
                promised = record_bytes(api_key, body) if promised is None else promised
                route.waiting.append((lambda: leave() if link.open else None, UNREAD))
                return
            sent = body
            if sent is not None:
                try:
                    sent = pass_response(api_key, api_version, sent, through_bytes=self.through_bytes)
                except (ConnectionAbortedError, StorageError):
                    self.close(connection, by=connection.process)
                    return
                if promised is not None and record_bytes(api_key, body) != promised:
                    self.torn_answers.append((connection.process.host.name, link.key[1]))
            message = None if sent is None else UNREAD
            if message is not None and self.on_message is not None:
                source, target, _ = connection.to_client.key
                message = Message(source, target, api_key, api_version, sent, is_request=False)
            self._deliver(connection.to_client, lambda: self._answer(connection, slot, sent), message)

        link = connection.to_client
        link.last_at_ms = max(link.last_at_ms, self.now_ms + self._delay_ms())
        self.at(link.last_at_ms, lambda: leave() if link.open else None)

    @staticmethod
    def _answer(connection: Connection, slot: int, body: Any) -> None:
        waiting = connection.answered.pop(slot, None)
        connection.deadlines.pop(slot, None)
        if waiting is not None:
            waiting[2](body)

    def _send(self, process: Process, effect: Send) -> None:
        """A node asks a peer, over one connection a (peer, channel)."""

        def answered(body: Any) -> None:
            if body is None:
                self.step(process, PeerFailed(effect.peer_id, effect.request_id, "connection lost"))
            else:
                self.step(process, PeerAnswered(effect.peer_id, effect.request_id, body))

        key = (effect.peer_id, effect.channel)
        connection = process.peers.get(key)
        if connection is None or not connection.is_open:
            address = (effect.host, effect.port)
            target = next((one for one in self.hosts.values() if address in one.addresses), None)
            if target is not None and self.is_cut(process.host.name, target.name, target.addresses[address]):
                failed = PeerFailed(effect.peer_id, effect.request_id, f"no connection within {CONNECT_TIMEOUT_MS} ms")
                self.at(self.now_ms + min(CONNECT_TIMEOUT_MS, effect.timeout_ms), lambda: self.step(process, failed))
                return
            connection = (
                None
                if target is None
                else self.connect(target.name, target.addresses[address], process.host.name, process)
            )
            if connection is None:
                self._later(process, lambda: PeerFailed(effect.peer_id, effect.request_id, CONNECTION_REFUSED))
                return
            process.peers[key] = connection
        self.request(connection, effect.api_key, effect.api_version, effect.body, answered, effect.timeout_ms)

    def _watch_deadlines(self, connection: Connection) -> None:
        """One look a connection, at the earliest deadline, and another one for the next."""
        if connection.watched or not connection.deadlines:
            return
        connection.watched = True

        def look() -> None:
            connection.watched = False
            if not connection.is_open:
                return
            if connection.deadlines and min(connection.deadlines.values()) <= self.now_ms:
                self.close(connection, by=connection.owner)
            else:
                self._watch_deadlines(connection)

        self.at(min(connection.deadlines.values()), look)

    def _deliver(self, link: Link, action: Callable[[], None], message: Message | None) -> None:
        """Let something arrive after a drawn delay, in the connection's order, unless the route keeps it back."""
        get_route, key = self.network.get, link.key
        route = get_route(key)
        least_ms = self.least_delay_ms
        at_ms = self.now_ms + least_ms + self.chance.below(self.most_delay_ms - least_ms + 1)
        if route is not None:
            at_ms += route.extra_delay_ms
        at_ms = max(at_ms, link.last_at_ms)
        link.last_at_ms = at_ms

        def arrive() -> None:
            if message is not None and not link.open:
                return
            route = get_route(key)
            if route is None or (route.is_open and not route.waiting):
                if message is not None and self.on_message is not None:
                    self.on_message(message)
                action()
            else:
                route.waiting.append((lambda: self._pass_on(link, action, message), message))

        number = self._next_number  # as `at` has it: this is most of what is ever put there
        self._next_number = number + 1
        heapq.heappush(self._queue, (at_ms, number, arrive))

    def _pass_on(self, link: Link, action: Callable[[], None], message: Message | None) -> None:
        """Let something go on that a route had kept back."""
        if message is None or link.open:
            if message is not None and self.on_message is not None:
                self.on_message(message)
            action()

    def close(self, connection: Connection, by: Process | None) -> None:
        """One end closes: what was in flight is lost, and the other end is told over the network."""
        if not connection.is_open:
            return
        connection.to_node.open = connection.to_client.open = False
        node = connection.process

        def node_sees() -> None:
            if node.connections.pop(connection.connection_id, None) is not None:
                self.step(node, ConnectionClosed(connection.connection_id, "connection lost", by_peer=True))

        def client_sees() -> None:
            waiting, connection.answered = connection.answered, {}
            for _, _, answered in waiting.values():
                answered(None)

        if by is node:
            node.connections.pop(connection.connection_id, None)
            self.step(node, ConnectionClosed(connection.connection_id, "closed here", by_peer=False))
            self._deliver(connection.to_client, client_sees, None)
        else:
            self.at(self.now_ms + self._delay_ms(), client_sees)
            self._deliver(connection.to_node, node_sees, None)

    def reset(self, connection: Connection) -> None:
        """A connection breaks: its node sees that at once, and the other end a moment later."""
        node = connection.process
        if connection.is_open and node.connections.pop(connection.connection_id, None) is not None:
            self.close(connection, by=None)
            self.step(node, ConnectionClosed(connection.connection_id, "connection lost", by_peer=True))

    # --- small things ---

    def _delay_ms(self) -> int:
        return self.least_delay_ms + self.chance.below(self.most_delay_ms - self.least_delay_ms + 1)

    def _number(self) -> int:
        number = self._next_number
        self._next_number = number + 1
        return number
