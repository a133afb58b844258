"""Requests to other nodes: one connection for each peer, channel and address, requests pipelined, each answered once.

    idle -> connecting      a request is to be sent, at once or when the back-off after a failure is over
    connecting -> open      requests that waited are sent
    connecting -> idle      refused, unreachable or too slow: those that waited fail
    open -> idle            lost, closed, an unreadable answer, or a request past its time: all on it fail

The first attempt after a connection that worked is made at once; after failures attempts keep a growing, bounded
distance, so a node that is down costs its peers nothing.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidelog.effects import Send
from tidelog.errors import DecodeError
from tidelog.events import CONNECTION_REFUSED
from tidelog.outbox import Timer
from tidelog.runtime.loop import READ, WRITE, Loop
from tidelog.runtime.receiving import ReceiveMemory, Receiver
from tidelog.runtime.resolver import Address, Resolver
from tidelog.runtime.sending import Sender
from tidelog.wire.frames import decode_response, encode_request

PeerAnswer = Callable[[int, int, Any], None]
"""Called with peer id, request id and the answer."""
PeerFailure = Callable[[int, int, str], None]
"""Called with peer id, request id and the reason."""
SWEEP_MS = 10_000


class PeerSettings(NamedTuple):
    """How connections to other nodes behave."""

    client_id: str = "tidelog"
    max_answer_bytes: int = 104_857_600
    connect_timeout_ms: int = 2000
    backoff_ms: int = 20
    backoff_max_ms: int = 500
    max_requests: int = 1000
    """Unanswered requests of one connection; a further one fails at once."""
    max_idle_ms: int = 600_000
    address_overrides: Mapping[tuple[str, int], tuple[str, int]] = {}
    """Where to connect instead of an address that was told; links that can be cut stand there."""


class _Question:
    """A request on its way."""

    __slots__ = ("api_key", "api_version", "correlation_id", "deadline_ms", "request_id")

    def __init__(self, effect: Send, deadline_ms: int) -> None:
        self.request_id = effect.request_id
        self.api_key = effect.api_key
        self.api_version = effect.api_version
        self.deadline_ms = deadline_ms
        self.correlation_id = -1


class PeerConnection:
    """One connection to one peer, made again whenever it is needed."""

    def __init__(self, peers: Peers, peer_id: int, host: str, port: int) -> None:
        self._peers = peers
        self._loop = peers.loop
        self.peer_id = peer_id
        self._host = host
        self._port = port
        self.last_used_ms = peers.loop.now_ms
        self.dirty = False
        self._socket: socket.socket | None = None
        self._is_open = False
        self._is_connecting = False
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        self._interest = 0
        self._waiting: deque[tuple[_Question, Any]] = deque()
        """Not sent yet, with their bodies."""
        self._asked: deque[_Question] = deque()
        """Sent, in the order in which answers must come."""
        self._next_correlation_id = 0
        self._failures = 0
        """Connections that ended without a single answer, in a row."""
        self._attempt = 0
        """Numbers the attempts, so that a late address or time-out of an old one is not taken for a new one's."""
        self._not_before_ms = 0
        self._untried: deque[Address] = deque()
        """Other addresses of the same name, for this attempt."""
        self._turn = 0
        """Which address an attempt begins with."""
        self._reason = ""
        """Why earlier addresses of this attempt did not do."""
        self._timer: Timer | None = None

    @property
    def is_unused(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._waiting and not self._asked

    def ask(self, effect: Send) -> None:
        """Send a request as soon as there is a connection; its outcome is reported exactly once."""
        settings = self._peers.settings
        now_ms = self._loop.clock.now_ms()
        self.last_used_ms = now_ms
        if len(self._waiting) + len(self._asked) >= settings.max_requests:
            self._peers.failed(self.peer_id, effect.request_id, f"{settings.max_requests} requests are unanswered")
            return
        question = _Question(effect, now_ms + effect.timeout_ms)
        if self._is_open:
            self._put(question, effect.body)
        else:
            self._waiting.append((question, effect.body))
            if not self._is_connecting:
                self._is_connecting = True
                self._attempt += 1
                self._connect_after(max(0, self._not_before_ms - now_ms), self._attempt)
        self._watch_deadline(question.deadline_ms)

    def send(self) -> None:
        """Write what is queued."""
        self.dirty = False
        if self._sender is None or not self._is_open:
            return
        try:
            done = self._sender.send()
        except OSError as error:
            self._lose(f"connection lost: {error.strerror}")
            return
        self._watch(READ if done else READ | WRITE)

    def close(self, reason: str) -> None:
        """End the connection; whatever is unanswered fails."""
        self._lose(reason)
        if self._timer is not None:
            self._timer.cancel()

    # --- connecting ---

    def _connect_after(self, delay_ms: int, attempt: int) -> None:
        def connect() -> None:
            if attempt == self._attempt and self._is_connecting:
                self._loop.after(
                    self._peers.settings.connect_timeout_ms,
                    lambda: self._connected_too_late(attempt),
                )
                self._peers.resolver.resolve(self._host, self._port, resolved)

        def resolved(addresses: list[Address], reason: str) -> None:
            if attempt == self._attempt and self._is_connecting:
                turn = self._turn % max(1, len(addresses))
                self._untried = deque(addresses[turn:] + addresses[:turn])
                self._connect_next(reason)

        if delay_ms:
            self._loop.after(delay_ms, connect)
        else:
            connect()

    def _connected_too_late(self, attempt: int) -> None:
        if attempt == self._attempt and self._is_connecting:
            self._turn += 1  # the next attempt begins with another address
            self._lose(f"no connection within {self._peers.settings.connect_timeout_ms} ms")

    def _connect_next(self, reason: str) -> None:
        """Try the next address of the name; when there is none left, the attempt has failed."""
        while self._untried:
            family, address = self._untried.popleft()
            try:
                self._socket = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                reason = _worse(reason, f"no socket: {error.strerror}")
                continue
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outcome = self._socket.connect_ex(address)
            if outcome in (0, errno.EINPROGRESS):
                self._reason = reason
                self._watch(WRITE)
                return
            reason = _worse(reason, _name_outcome(outcome))
            self._drop_socket()
        self._lose(reason)

    def _finish_connecting(self, connecting: socket.socket) -> None:
        outcome = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if outcome:
            self._drop_socket()
            self._connect_next(_worse(self._reason, _name_outcome(outcome)))
            return
        try:
            # On one machine a dead peer's port can be given to this very socket, which then talks to itself.
            is_own = connecting.getsockname() == connecting.getpeername()
        except OSError as error:  # reset between the two questions
            self._lose(f"connection lost: {error.strerror}")
            return
        if is_own:
            self._drop_socket()
            self._connect_next(CONNECTION_REFUSED)
            return
        self._is_connecting = False
        self._is_open = True
        self._receiver = Receiver(self._peers.memory, self._peers.settings.max_answer_bytes)
        self._sender = Sender(connecting)
        waiting, self._waiting = self._waiting, deque()
        for question, body in waiting:
            self._put(question, body)
        self._watch(READ)

    def _put(self, question: _Question, body: Any) -> None:
        assert self._sender is not None
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        question.correlation_id = self._next_correlation_id
        self._sender.add(
            encode_request(
                question.api_key, question.api_version, question.correlation_id, self._peers.settings.client_id, body
            )
        )
        self._asked.append(question)
        if not self.dirty:
            self.dirty = True
            self._peers.dirty.append(self)

    # --- answers ---

    def _ready(self, events: int) -> None:
        if self._socket is None:
            return
        if self._is_connecting:
            self._finish_connecting(self._socket)
            return
        if events & WRITE:
            self.send()
        if events & READ and self._is_open:
            self._read(self._socket)

    def _read(self, source: socket.socket) -> None:
        receiver = self._receiver
        assert receiver is not None
        try:
            count = receiver.receive(source)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(f"connection lost: {error.strerror}")
            return
        if not count:
            self._lose("connection closed by the peer")
            return
        self.last_used_ms = self._loop.now_ms
        try:
            while self._is_open:
                frame = receiver.next_frame()
                if frame is None:
                    break
                self._take(frame)
        except DecodeError as error:
            self._lose(f"unreadable answer: {error}")
        if self._is_open:
            receiver.settle()

    def _take(self, frame: memoryview) -> None:
        if not self._asked:
            raise DecodeError("an answer nobody asked for")
        question = self._asked[0]
        correlation_id, body = decode_response(question.api_key, question.api_version, frame)
        if correlation_id != question.correlation_id:
            raise DecodeError(f"answer {correlation_id} came where {question.correlation_id} was due")
        self._asked.popleft()
        self._failures = 0
        self._peers.answered(self.peer_id, question.request_id, body)

    # --- endings ---

    def _watch_deadline(self, deadline_ms: int) -> None:
        """One timer for all requests: it looks for the earliest deadline and goes off again for the next."""
        if self._timer is not None and self._timer.callback is not None and self._timer.at_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.after(max(0, deadline_ms - self._loop.clock.now_ms()), self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        now_ms = self._loop.clock.now_ms()
        if any(question.deadline_ms <= now_ms for question in self._asked):
            # Answers come in order: what is behind it cannot be answered before it either.
            self._lose("no answer in time")
        late = [entry for entry in self._waiting if entry[0].deadline_ms <= now_ms]
        self._waiting = deque(entry for entry in self._waiting if entry[0].deadline_ms > now_ms)
        for question, _ in late:
            self._peers.failed(self.peer_id, question.request_id, "no connection in time")
        deadlines = [question.deadline_ms for question in self._asked] + [
            entry[0].deadline_ms for entry in self._waiting
        ]
        if deadlines:
            self._watch_deadline(min(deadlines))

    def _lose(self, reason: str) -> None:
        if self._is_connecting or self._is_open:
            settings = self._peers.settings
            worked = self._is_open and not self._failures
            delay_ms = 0 if worked else settings.backoff_ms << min(self._failures, 16)
            self._failures += 1
            self._not_before_ms = self._loop.clock.now_ms() + min(delay_ms, settings.backoff_max_ms)
        self._is_connecting = self._is_open = False
        self._attempt += 1
        if self._receiver is not None:
            self._receiver.close()
        self._drop_socket()
        self._receiver = self._sender = None
        self._untried.clear()
        asked, self._asked = self._asked, deque()
        waiting, self._waiting = self._waiting, deque()
        for question in [*asked, *(entry[0] for entry in waiting)]:
            self._peers.failed(self.peer_id, question.request_id, reason)

    def _drop_socket(self) -> None:
        if self._socket is not None:
            if self._interest:
                self._loop.unwatch(self._socket.fileno())
            self._socket.close()
        self._socket = None
        self._interest = 0

    def _watch(self, interest: int) -> None:
        if self._socket is None or interest == self._interest:
            return
        self._loop.rewatch(self._socket.fileno(), self._interest, interest, self._ready)
        self._interest = interest


def _name_outcome(outcome: int) -> str:
    return CONNECTION_REFUSED if outcome == errno.ECONNREFUSED else os.strerror(outcome).lower()


def _worse(reason: str, another: str) -> str:
    """Of several addresses: that nobody listens at one says more than that another leads nowhere."""
    return reason if reason == CONNECTION_REFUSED else another


class Peers:
    """Every connection this node has made to others."""

    def __init__(
        self,
        loop: Loop,
        memory: ReceiveMemory,
        answered: PeerAnswer,
        failed: PeerFailure,
        settings: PeerSettings | None = None,
    ) -> None:
        self.loop = loop
        self.memory = memory
        self.answered = answered
        self.failed = failed
        self.settings = settings or PeerSettings()
        self.resolver = Resolver(loop.wake)
        self.dirty: list[PeerConnection] = []
        self._connections: dict[tuple[int, str, str, int], PeerConnection] = {}
        self._sweep: Timer | None = None
        loop.on_wake.append(self.resolver.collect)

    def send(self, effect: Send) -> None:
        """Carry out a Send."""
        key = (effect.peer_id, effect.channel, effect.host, effect.port)
        connection = self._connections.get(key)
        if connection is None:
            told = (effect.host, effect.port)
            host, port = self.settings.address_overrides.get(told, told)
            connection = self._connections[key] = PeerConnection(self, effect.peer_id, host, port)
            if self._sweep is None:
                self._sweep = self.loop.after(SWEEP_MS, self._look_at_idle)
        connection.ask(effect)

    def flush(self) -> None:
        """Write the requests of this turn."""
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for connection in dirty:
                connection.send()

    def close_all(self) -> None:
        """Drop every connection; what is unanswered fails."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._connections.values()):
            connection.close("the node stops")
        self._connections.clear()

    def _look_at_idle(self) -> None:
        limit_ms = self.settings.max_idle_ms
        for key, connection in list(self._connections.items()):
            if 0 <= limit_ms <= self.loop.now_ms - connection.last_used_ms and connection.is_unused:
                connection.close("idle")
                del self._connections[key]
        self._sweep = self.loop.after(SWEEP_MS, self._look_at_idle) if self._connections else None
