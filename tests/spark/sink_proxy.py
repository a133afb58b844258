"""A way to a broker that watches the requests, and does something at one of them: kill a process, for example.

The broker advertises the proxy's port, so every connection goes through it, of drivers and executors alike.

    traps.set(END_TXN, "after", lambda client: kill(client.pid))

"before" is before the broker has seen the request, which is then not passed on; "after" is when the broker has answered
and nobody has heard it yet, which the answer then never is; "while" is before, too, and it is passed on afterwards.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN, TXN_OFFSET_COMMIT = 0, 22, 24, 26, 28


class ProxiedClient:
    """Who sent a request, and to which broker."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self.broker_port = broker_port

    @property
    def pid(self) -> int:
        """The process that holds the other end of the connection."""
        return owner_of_port(self.port)


Action = Callable[[ProxiedClient], None]


class Trap:
    """One request to wait for, and what to do then."""

    def __init__(self, api_key: int, when: str, action: Action, skip: int) -> None:
        assert when in ("before", "while", "after")
        self.api_key = api_key
        self.when = when
        self.action = action
        self.skip = skip
        self.sprung = threading.Event()


class Traps:
    """The one trap that is set at all doors of a cluster, and what has come through them."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        """API and version of every request."""
        self._trap: Trap | None = None
        self._lock = threading.Lock()

    def set(self, api_key: int, when: str, action: Action, skip: int = 0) -> Trap:
        """Wait for a request of an API, after `skip` others of it."""
        self._trap = Trap(api_key, when, action, skip)
        return self._trap

    def springs(self, api_key: int, version: int) -> Trap | None:
        """The trap, when this request is the one; it does not spring twice."""
        with self._lock:
            self.seen.append((api_key, version))
            trap = self._trap
            if trap is None or trap.api_key != api_key:
                return None
            if trap.skip:
                trap.skip -= 1
                return None
            self._trap = None
            return trap


class Proxy:
    """One broker's door."""

    def __init__(self, port: int, target_port: int, traps: Traps) -> None:
        self.port = port
        self.target_port = target_port
        self.traps = traps
        self._listener = socket.create_server(("127.0.0.1", port))
        self._sockets: set[socket.socket] = set()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._listener.close()
        for each in list(self._sockets):
            _close(each)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, (_, port) = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), timeout=60)
                server.settimeout(None)
            except OSError:  # a broker that is down refuses; so does its door
                _close(client)
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.add(each)
            pending: deque[Trap | None] = deque()
            who = ProxiedClient(port, self.target_port)
            threading.Thread(target=self._requests, args=(client, server, who, pending), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server, who, pending), daemon=True).start()

    def _requests(
        self, client: socket.socket, server: socket.socket, who: ProxiedClient, pending: deque[Trap | None]
    ) -> None:
        with contextlib.suppress(OSError):
            while frame := _read_frame(client):
                api_key, version = struct.unpack_from(">hh", frame, 4)
                trap = self.traps.springs(api_key, version)
                if trap is not None and trap.when != "after":
                    trap.action(who)
                    trap.sprung.set()
                    if trap.when == "before":
                        break
                    trap = None
                pending.append(trap)
                server.sendall(frame)
        _close(client)
        _close(server)

    def _answers(
        self, client: socket.socket, server: socket.socket, who: ProxiedClient, pending: deque[Trap | None]
    ) -> None:
        with contextlib.suppress(OSError):
            while frame := _read_frame(server):
                trap = pending.popleft()
                if trap is not None:
                    trap.action(who)
                    trap.sprung.set()
                    break
                client.sendall(frame)
        _close(client)
        _close(server)


def _read_frame(source: socket.socket) -> bytes:
    head = _read_exactly(source, 4)
    return head + _read_exactly(source, int.from_bytes(head, "big")) if head else b""


def _read_exactly(source: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(min(count - len(parts), 1 << 20))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


# --- processes ---


def owner_of_port(port: int) -> int:
    """The process with a connection from this local port (Linux)."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if int(words[1].rpartition(":")[2], 16) == port and words[9] != "0":
                inodes.add(f"socket:[{words[9]}]")
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(os.readlink(each) in inodes for each in (folder / "fd").iterdir()):
                return int(folder.name)
    return os.getpid()


def descendants(pid: int) -> list[int]:
    """A process and all that it started, and those started; the youngest last."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            text = (folder / "stat").read_text()
            parents[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found
