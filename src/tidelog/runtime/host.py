"""The node's surroundings: gives it events one at a time and carries out what it wants, in order.

What goes wrong inside a step is the node's own fault. A request that does it loses its connection and the node goes on;
anything else (a flush, a peer's answer, time) leaves a state nobody can vouch for, and the process ends: what was
acknowledged is on disk or with other nodes, and starting again is safe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tidelog.config import NodeConfig
from tidelog.effects import Close, Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.events import (
    ConnectionClosed,
    Event,
    FlushDone,
    PeerAnswered,
    PeerFailed,
    Request,
    StopRequested,
    Tick,
    WorkDone,
)
from tidelog.runtime.connection import Connection
from tidelog.runtime.flusher import Flusher
from tidelog.runtime.logging import EventLog
from tidelog.runtime.loop import Loop
from tidelog.runtime.peers import Peers, PeerSettings
from tidelog.runtime.server import Limits, Server
from tidelog.runtime.worker import Worker

EXIT_FAILED = 1
LOOK_AT_SETTINGS_MS = 1000


class NodeDoor(Protocol):
    """What the runtime knows of a node."""

    @property
    def wake_at_ms(self) -> int | None:
        """When the next step is due if nothing happens before."""

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """The requests it takes, with their first and last version."""

    @property
    def config(self) -> NodeConfig:
        """The settings in force now: another object when one was changed."""

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event and say what to do."""


class Host:
    """One node in one process."""

    def __init__(self, loop: Loop, server: Server, log: EventLog, peer_settings: PeerSettings | None = None) -> None:
        self.loop = loop
        self.server = server
        self.log = log
        self.halt: Halt | None = None
        """Set when the node is over; nothing reaches it any more."""
        self.flusher = Flusher(lambda token, error: self.deliver(FlushDone(token, error)), loop.wake)
        self.worker = Worker(loop, lambda token, result, error: self.deliver(WorkDone(token, result, error)))
        self.peers = Peers(
            loop,
            server.memory,
            lambda peer, request, body: self.deliver(PeerAnswered(peer, request, body)),
            lambda peer, request, reason: self.deliver(PeerFailed(peer, request, reason)),
            peer_settings,
        )
        self._node: NodeDoor | None = None
        self._events: deque[Event] = deque()
        self._is_stepping = False
        self._config: NodeConfig | None = None
        self._are_clients_admitted = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            Close: self._close,
            Send: self.peers.send,
            Flush: self.flusher.submit,
            Work: self.worker.submit,
            Tell: lambda tell: log.tell(tell.kind, tell.fields, tell.level),
            Halt: self._halt,
        }
        server.on_request = self.deliver
        server.on_closed = self._connection_closed
        loop.on_wake.append(self.flusher.collect)
        loop.at_turn_end.append(self._end_turn)
        loop.next_deadline_ms = self._next_deadline_ms

    # --- life ---

    def start(self, node: NodeDoor) -> None:
        """Bring the node to life."""
        self._node = node
        self.server.api_versions = node.api_versions
        self._config = node.config
        self.loop.after(LOOK_AT_SETTINGS_MS, self._look_at_settings)
        self.deliver(Tick())
        self.server.admit(self.server.unlimited_listeners)
        self._admit_clients()

    def _admit_clients(self) -> None:
        """Once the node can serve them: a client that came earlier would be told of a cluster without a controller, and
        some ask again only after seconds. Those of the quorum are let in from the start.
        """
        if self._node is not None and getattr(self._node, "serves_clients", True):
            self._are_clients_admitted = True
            self.server.admit()

    def request_stop(self) -> None:
        """Ask the node for a clean stop."""
        self.deliver(StopRequested())

    def close(self) -> None:
        """Let go of everything. After a clean stop answers that are queued get one last chance."""
        self._node = None
        self.server.close_all()
        self.peers.close_all()
        self.worker.stop()
        self.flusher.stop()

    # --- events in ---

    def deliver(self, event: Event) -> None:
        """Give an event to the node, after those that are waiting."""
        if self._is_stepping:
            self._events.append(event)
            return
        self._is_stepping = True
        try:
            self._step(event)
            while self._events:
                self._step(self._events.popleft())
        finally:
            self._is_stepping = False

    def _step(self, event: Event) -> None:
        if self._node is None or self.halt is not None:
            return
        try:
            effects = self._node.step(event, self.loop.clock.now_ms())
        except Exception as error:
            self._step_failed(event, error)
            return
        connections = self.server.connections
        for effect in effects:
            if type(effect) is Reply:
                connection = connections.get(effect.connection_id)
                if connection is not None:
                    self._answer(connection, effect)
            else:
                self._handlers[type(effect)](effect)

    def _answer(self, connection: Connection, effect: Reply) -> None:
        try:
            connection.answer(effect.slot, effect.body)
        except Exception as error:
            self.log.failure("answer-failed", error, answer=type(effect.body).__name__)
            self.server.close(connection, "the answer could not be written", by_peer=False)

    def _step_failed(self, event: Event, error: Exception) -> None:
        if isinstance(event, Request):
            self.log.failure("request-failed", error, request=type(event.body).__name__, version=event.api_version)
            connection = self.server.connections.get(event.connection_id)
            if connection is not None:
                self.server.close(connection, "the request could not be served", by_peer=False)
            return
        self.log.failure("step-failed", error, event=type(event).__name__)
        self._halt(Halt(EXIT_FAILED, f"{type(event).__name__} could not be handled"))

    # --- effects out ---

    def _close(self, effect: Close) -> None:
        connection = self.server.connections.get(effect.connection_id)
        if connection is not None:
            self.server.refuse(connection, effect.reason)

    def _halt(self, effect: Halt) -> None:
        if self.halt is None:
            self.halt = effect
            self._events.clear()
            self.loop.stop()

    def _connection_closed(self, connection: Connection, reason: str, by_peer: bool) -> None:
        self.deliver(ConnectionClosed(connection.connection_id, reason, by_peer))

    # --- time ---

    def _next_deadline_ms(self) -> int | None:
        return None if self._node is None else self._node.wake_at_ms

    def _end_turn(self) -> None:
        if self._node is not None:
            wake_at_ms = self._node.wake_at_ms
            if wake_at_ms is not None and wake_at_ms <= self.loop.now_ms:
                self.deliver(Tick())
            if not self._are_clients_admitted:
                self._admit_clients()
        self.server.flush()
        self.peers.flush()
        while self.server.dirty:  # a request that could not be sent was answered with an error
            self.server.flush()
            self.peers.flush()

    def _look_at_settings(self) -> None:
        """Dynamic settings: limits of connections hold from the next one on."""
        if self._node is not None and self._node.config is not self._config:
            self._config = self._node.config
            self.server.apply_limits(Limits.of(self._config))
        self.loop.after(LOOK_AT_SETTINGS_MS, self._look_at_settings)
