"""Listens, accepts within the limits, and keeps the clients' connections."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tidelog.config import Listener, NodeConfig, parse_connection_overrides
from tidelog.errors import ConfigError, ErrorCode
from tidelog.events import Request
from tidelog.runtime.connection import Connection
from tidelog.runtime.descriptors import HARD_MAX_DESCRIPTORS
from tidelog.runtime.logging import EventLog
from tidelog.runtime.loop import READ, Loop
from tidelog.runtime.receiving import ReceiveMemory
from tidelog.wire.api_table import ApiKey

ACCEPTS_PER_TURN = 64
ACCEPT_PAUSE_MS = 100
"""After the system had no descriptor left for a connection."""
SWEEP_MS = 1000
"""How often idle connections are looked at."""
BUFFER_KEPT_MS = 2000
"""How long a connection without traffic keeps its receive buffer."""


class Limits(NamedTuple):
    """What clients may take, from the settings of the node."""

    request_max_bytes: int = 104_857_600
    max_connections: int = 10_000
    max_connections_per_ip: int = 2_147_483_647
    connections_per_ip_overrides: Mapping[str, int] = {}
    max_connection_creation_rate: int = 2_147_483_647
    max_in_flight_requests: int = 100
    max_queued_response_bytes: int = 8_388_608
    max_received_bytes: int = 268_435_456
    connections_max_idle_ms: int = 600_000
    listen_backlog: int = 50

    @classmethod
    def of(cls, config: NodeConfig) -> Limits:
        """The limits a node's settings name."""
        return cls(
            config.socket_request_max_bytes,
            config.max_connections,
            config.max_connections_per_ip,
            parse_connection_overrides(config.max_connections_per_ip_overrides),
            config.max_connection_creation_rate,
            config.max_inflight_requests_per_connection,
            config.max_queued_response_bytes_per_connection,
            config.queued_max_request_bytes,
            config.connections_max_idle_ms,
            config.socket_listen_backlog_size,
        )


class Server:
    """Listeners and connections of one node."""

    def __init__(self, loop: Loop, limits: Limits, log: EventLog) -> None:
        self.loop = loop
        self.limits = limits
        self.log = log
        self.memory = ReceiveMemory(limits.max_received_bytes)
        self.connections: dict[int, Connection] = {}
        self.dirty: list[Connection] = []
        """Connections with answers to send at the end of the turn."""
        self.api_versions: Mapping[int, tuple[int, int]] = {}
        self.on_request: Callable[[Request], None] = lambda request: None
        self.on_closed: Callable[[Connection, str, bool], None] = lambda connection, reason, by_peer: None
        """Called with the reason and whether it was the other side's doing."""
        self.unlimited_listeners: frozenset[str] = frozenset()
        """Listeners of the quorum: clients must not be able to use up what nodes need to find a leader."""
        self.max_descriptors = HARD_MAX_DESCRIPTORS
        """How many connections of clients the process has descriptors for, whatever max.connections says."""
        self._listeners: list[tuple[socket.socket, str]] = []
        self._admitted: set[str] = set()
        """Listeners that let clients in; at the others they wait in the system's queue."""
        self._paused: set[str] = set()
        """Listeners that are left alone for a moment."""
        self._per_address: dict[str, int] = {}
        self._limited_connections = 0
        self._next_connection_id = 1
        self._creation_second = 0
        self._created_in_second = 0
        self._waiting_for_memory: list[Connection] = []
        self._sweep = loop.after(SWEEP_MS, self._look_at_idle)

    def apply_limits(self, limits: Limits) -> None:
        """Let other limits hold from now on."""
        self.limits = limits
        self.memory.limit_bytes = limits.max_received_bytes

    # --- listening ---

    def listen(self, listener: Listener) -> Listener:
        """Open a listener's socket, and say where it really listens; ConfigError when it cannot."""
        server_socket = open_listener(listener, self.limits.listen_backlog)
        self._listeners.append((server_socket, listener.name))
        host, port = server_socket.getsockname()[:2]
        return Listener(listener.name, listener.host or host, port)

    def admit(self, names: Iterable[str] | None = None) -> None:
        """Let clients in at these listeners, or at all; until then they wait in the system's queue."""
        for server_socket, name in self._listeners:
            if name not in self._admitted and (names is None or name in names):
                self._admitted.add(name)
                if name not in self._paused:
                    self._watch_listener(server_socket, name)

    def _watch_listener(self, server_socket: socket.socket, name: str) -> None:
        self.loop.watch(server_socket.fileno(), READ, partial(self._accept, server_socket, name))

    def close_all(self) -> None:
        """Stop listening and drop every connection, after one last try to send what is queued for it."""
        self._sweep.cancel()
        self._pause({name for _, name in self._listeners})
        for server_socket, _ in self._listeners:
            server_socket.close()
        self._listeners.clear()
        for connection in list(self.connections.values()):
            connection.send()
            self.close(connection, "the node stops", by_peer=False)

    def _accept(self, server_socket: socket.socket, listener: str, events: int) -> None:
        if listener in self._paused:  # by another one that was found ready in the same turn
            return
        for _ in range(ACCEPTS_PER_TURN):
            if listener not in self.unlimited_listeners and self._is_over_creation_rate():
                limited = {name for _, name in self._listeners} - self.unlimited_listeners
                self._pause_accepting(limited, 1000 - self.loop.now_ms % 1000)
                return
            try:
                accepted, peer = server_socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self.log.warning("accept-failed", listener=listener, reason=error.strerror)
                    self._pause_accepting({name for _, name in self._listeners}, ACCEPT_PAUSE_MS)
                    return
                continue  # the client was gone before it was let in
            address = peer[0].removeprefix("::ffff:")
            reason = self._reason_to_refuse(address, listener)
            if reason:
                self.log.warning("connection-refused", address=address, listener=listener, reason=reason)
                accepted.close()
            else:
                self._add(accepted, address, listener)

    def _add(self, accepted: socket.socket, address: str, listener: str) -> None:
        accepted.setblocking(False)
        # Without it an answer waits for the acknowledgement of the one before: 4 ms instead of 0.6, measured.
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection_id = self._next_connection_id
        self._next_connection_id += 1
        self.connections[connection_id] = Connection(self, connection_id, accepted, address, listener)
        if listener not in self.unlimited_listeners:
            self._limited_connections += 1
            self._per_address[address] = self._per_address.get(address, 0) + 1

    def _reason_to_refuse(self, address: str, listener: str) -> str:
        if listener in self.unlimited_listeners:
            return ""
        limits = self.limits
        if self._limited_connections >= limits.max_connections:
            return f"max.connections is {limits.max_connections}"
        if self._limited_connections >= self.max_descriptors:
            return f"the process has descriptors for {self.max_descriptors} connections"
        allowed = limits.connections_per_ip_overrides.get(address, limits.max_connections_per_ip)
        if self._per_address.get(address, 0) >= allowed:
            return f"max.connections.per.ip is {allowed}"
        return ""

    def _is_over_creation_rate(self) -> bool:
        second = self.loop.now_ms // 1000
        if second != self._creation_second:
            self._creation_second, self._created_in_second = second, 0
        self._created_in_second += 1
        return self._created_in_second > self.limits.max_connection_creation_rate

    def _pause_accepting(self, names: set[str], pause_ms: int) -> None:
        paused = self._pause(names)
        self.loop.after(pause_ms, lambda: self._accept_again(paused))

    def _pause(self, names: set[str]) -> set[str]:
        """Leave listeners alone; those that were not already come back."""
        paused = names - self._paused
        self._paused |= paused
        for server_socket, name in self._listeners:
            if name in paused and name in self._admitted:
                self.loop.unwatch(server_socket.fileno())
        return paused

    def _accept_again(self, names: set[str]) -> None:
        self._paused -= names
        for server_socket, name in self._listeners:
            if name in names and name in self._admitted:
                self._watch_listener(server_socket, name)

    # --- connections ---

    def flush(self) -> None:
        """Send the answers of this turn."""
        while self.dirty:
            dirty, self.dirty = self.dirty, []
            for connection in dirty:
                if not connection.is_closed:
                    connection.send()
        if self._waiting_for_memory and not self.memory.is_short:
            waiting, self._waiting_for_memory = self._waiting_for_memory, []
            for connection in waiting:
                connection.resume()

    def refuse(self, connection: Connection, reason: str) -> None:
        """End a connection for what came over it: earlier answers leave, one line is written."""
        connection.send()
        self.close(connection, reason, by_peer=False, warn=True)

    def fail(self, connection: Connection, error: Exception) -> None:
        """End a connection over which this runtime itself made a mistake: it must not cost anybody else theirs."""
        self.log.failure("connection-failed", error, address=connection.address, listener=connection.listener)
        self.close(connection, "it could not be served", by_peer=False)

    def close(self, connection: Connection, reason: str, *, by_peer: bool = True, warn: bool = False) -> None:
        """End a connection and tell whoever must know; nothing happens when it has ended already."""
        if connection.is_closed:
            return
        connection.disconnect()
        del self.connections[connection.connection_id]
        if connection.listener not in self.unlimited_listeners:
            self._limited_connections -= 1
            left = self._per_address[connection.address] - 1
            if left:
                self._per_address[connection.address] = left
            else:
                del self._per_address[connection.address]
        if warn:
            self.log.warning(
                "connection-closed", address=connection.address, listener=connection.listener, reason=reason
            )
        self.on_closed(connection, reason, by_peer)

    def must_wait(self, connection: Connection) -> bool:
        """Whether a connection is left unread while memory is short: half requests must not silence the quorum."""
        return connection.listener not in self.unlimited_listeners

    def wait_for_memory(self, connection: Connection) -> None:
        """Leave a connection unread until others have given receive buffers back."""
        connection.stop_reading()
        self._waiting_for_memory.append(connection)

    def unsupported_api_versions(self) -> Any:
        """The answer to an ApiVersions request of an unknown version: what versions of it there are (KIP-511)."""
        from tidelog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse  # seldom needed

        low, high = self.api_versions.get(ApiKey.API_VERSIONS, (0, 0))
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)],
        )

    def _look_at_idle(self) -> None:
        """Close who is silent too long, and take receive buffers back from who is quiet."""
        now_ms = self.loop.now_ms
        idle_ms = self.limits.connections_max_idle_ms
        for connection in list(self.connections.values()):
            quiet_ms = now_ms - connection.last_active_ms
            if quiet_ms >= BUFFER_KEPT_MS and connection.receiver.owns_memory:
                connection.receiver.release()
            if 0 <= idle_ms <= quiet_ms and not connection.is_waiting:
                self.close(connection, f"silent for {quiet_ms} ms", by_peer=False)
        interval_ms = SWEEP_MS if idle_ms < 0 else min(SWEEP_MS, max(idle_ms // 4, 10))
        self._sweep = self.loop.after(interval_ms, self._look_at_idle)


def open_listener(listener: Listener, backlog: int) -> socket.socket:
    """A listening socket; an empty host is every interface, in both versions of IP where the system has them."""
    try:
        if not listener.host and socket.has_dualstack_ipv6():
            return _nonblocking(
                socket.create_server(("", listener.port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True)
            )
        # Bytes, because the codec for international names costs more to import than the rest of this module.
        found = socket.getaddrinfo(
            listener.host.encode("idna" if not listener.host.isascii() else "ascii") or b"0.0.0.0",
            listener.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
        family, _, _, _, address = found[0]
        return _nonblocking(socket.create_server(address[:2], family=family, backlog=backlog))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"listeners: cannot listen on {listener}: {reason}") from None


def _nonblocking(server_socket: socket.socket) -> socket.socket:
    server_socket.setblocking(False)
    return server_socket


_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
