"""Links between local nodes that can be held, cut and slowed: a process that stands between them.

    passing    bytes go on as they come, after the link's delay
    held       bytes wait and keep their order; nothing is read, so that a sender feels it when its own buffers are full
    cut        connections are reset, and so is every new one

While nobody listens at a port, whoever means it is refused, as without links: a node that died is told from one that is
slow by that.

A link goes one way: what node 1 sends to node 2 obeys link (1, 2), what node 2 answers obeys link (2, 1), whoever
opened the connection. A connection lives only while neither way is cut. What waited on a held link arrives when it is
healed, however late: as in a network, an end of the connection is news that waits as well.

Nodes are led here by `peer.address.overrides`. Listening sockets are inherited, so ports are known before it starts.
It is told what to do by lines of JSON on a port of its own, and ends by itself when the cluster's state file no longer
names it, or when it has none and its parent is gone: whoever started it may have been killed.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from tidelog.errors import TidelogError
from tidelog.runtime import doors

HOST = "127.0.0.1"
PASSING, HELD, CUT = "passing", "held", "cut"
STATES = (PASSING, HELD, CUT)
MAX_WAITING_BYTES = 4_000_000
"""What a slowed way of one connection may have under way; above it nothing more is read."""
MAX_PIPES_PER_LINK = 200
"""Connections of one link; a node that keeps giving up on a held link makes new ones, and the oldest are reset."""
MAX_QUESTION_BYTES = 1_000_000
LOOK_AT_STATE_S = 5.0
LOOK_BEHIND_S = 0.02
"""How often it is looked whether a dead node listens again."""
_CHUNK_BYTES = 262_144
_ANSWER_TIMEOUT_S = 5.0


class Entrance(NamedTuple):
    """Where a node connects to when it means another's port."""

    from_node: int
    to_node: int
    target_port: int
    descriptor: int
    """Of a listening socket."""


class Link:
    """One way between two nodes."""

    def __init__(self) -> None:
        self.state = PASSING
        self.delay_ms = 0


class LinkStatus(NamedTuple):
    """One way between two nodes, as it is told."""

    from_node: int
    to_node: int
    state: str
    delay_ms: int
    connections: int
    """Open ones that `from_node` made."""


class LinkChange(NamedTuple):
    """What is to become of one way; None leaves it as it is."""

    from_node: int
    to_node: int
    state: str | None = None
    delay_ms: int | None = None


class _Flow:
    """One direction of one connection."""

    def __init__(self, source: socket.socket, sink: socket.socket, link: Link) -> None:
        self.source = source
        self.sink = sink
        self.link = link
        self.waiting: deque[tuple[float, memoryview]] = deque()
        """Bytes read and not yet passed on, each with the moment before which it must not be."""
        self.waiting_bytes = 0
        self.source_ended = False
        self.is_over = False
        """The end was passed on as well."""

    @property
    def may_read(self) -> bool:
        return self.link.state == PASSING and not self.source_ended and self.waiting_bytes < MAX_WAITING_BYTES

    def wants_to_write(self, now: float) -> bool:
        return bool(self.waiting) and self.link.state == PASSING and self.waiting[0][0] <= now

    def read(self, now: float) -> None:
        """Take what is there; raises OSError when the source was reset."""
        with suppress(BlockingIOError):
            data = self.source.recv(_CHUNK_BYTES)
            if data:
                self.waiting.append((now + self.link.delay_ms / 1000, memoryview(data)))
                self.waiting_bytes += len(data)
            else:
                self.source_ended = True

    def write(self, now: float) -> None:
        """Pass on what is due; raises OSError when the sink was reset."""
        with suppress(BlockingIOError):
            while self.wants_to_write(now):
                due, data = self.waiting[0]
                sent = self.sink.send(data)
                self.waiting_bytes -= sent
                if sent < len(data):
                    self.waiting[0] = (due, data[sent:])
                    return
                self.waiting.popleft()
        if self.source_ended and not self.waiting and not self.is_over and self.link.state == PASSING:
            self.is_over = True
            with suppress(OSError):
                self.sink.shutdown(socket.SHUT_WR)


class _Pipe:
    """One connection: the node's end, and ours to the node it meant."""

    def __init__(self, entrance: Entrance, near: socket.socket, far: socket.socket, there: Link, back: Link) -> None:
        self.entrance = entrance
        self.near = near
        self.far = far
        self.is_connected = False
        self.there = _Flow(near, far, there)
        self.back = _Flow(far, near, back)
        self.ready: dict[socket.socket, Callable[[int], None]] = {}
        """What is to be done when one of the ends is ready."""

    @property
    def flows(self) -> tuple[_Flow, _Flow]:
        return self.there, self.back


class _Target:
    """A port of a node, and the doors that lead there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.doors: list[tuple[socket.socket, Callable[[int], None]]] = []
        """Each with what is to be done when somebody comes."""
        self.is_shut = False
        self.probe: socket.socket | None = None
        self.probe_at = float("inf")
        """When to look again whether somebody listens there."""


class Links:
    """Everything between the nodes of one cluster."""

    def __init__(
        self,
        entrances: Iterable[Entrance],
        control: socket.socket,
        is_wanted: Callable[[], bool],
        look_every_s: float = LOOK_AT_STATE_S,
    ) -> None:
        self._is_wanted = is_wanted
        self._look_every_s = look_every_s
        self._selector = selectors.DefaultSelector()
        self._interest: dict[int, int] = {}
        self._links: dict[tuple[int, int], Link] = {}
        self._pipes: dict[_Pipe, None] = {}
        self._late: dict[_Pipe, None] = {}
        """Those with bytes that are to arrive later."""
        self._targets: dict[int, _Target] = {}
        for entrance in entrances:
            for way in ((entrance.from_node, entrance.to_node), (entrance.to_node, entrance.from_node)):
                self._links.setdefault(way, Link())
            door = socket.socket(fileno=entrance.descriptor)
            target = self._targets.setdefault(entrance.target_port, _Target(entrance.target_port))
            target.doors.append((door, self._listen(door, self._accept_at(entrance))))
        self._listen(control, self._accept_control)

    def run(self) -> None:
        """Pass bytes on for as long as the cluster wants it."""
        look_at = time.monotonic() + self._look_every_s
        while True:
            for key, events in self._selector.select(self._timeout(look_at)):
                key.data(events)
            now = time.monotonic()
            if now >= look_at:
                if not self._is_wanted():
                    return
                look_at = now + self._look_every_s
            for pipe in list(self._late):
                self._move(pipe, now)
            for target in self._targets.values():
                if target.probe_at <= now:
                    self._look_behind(target)

    # --- connections ---

    def _listen(self, listener: socket.socket, accept: Callable[[socket.socket], None]) -> Callable[[int], None]:
        listener.setblocking(False)

        def ready(_events: int) -> None:
            with suppress(OSError):
                accepted, _ = listener.accept()
                accept(accepted)

        self._selector.register(listener, selectors.EVENT_READ, ready)
        return ready

    def _look_behind(self, target: _Target) -> None:
        """Look whether anybody listens at a port; the answer comes as an event."""
        target.probe_at = float("inf")
        if target.probe is not None:
            return
        probe = target.probe = socket.socket()
        probe.setblocking(False)
        probe.connect_ex((HOST, target.port))
        self._watch(probe, selectors.EVENT_WRITE, lambda _events: self._looked_behind(target, probe))

    def _looked_behind(self, target: _Target, probe: socket.socket) -> None:
        is_there = not probe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) and not _talks_to_itself(probe)
        self._watch(probe, 0, None)
        self._interest.pop(probe.fileno(), None)
        probe.close()
        target.probe = None
        if is_there and target.is_shut:
            target.is_shut = False
            for door, ready in target.doors:
                doors.reopen(door)
                self._selector.register(door, selectors.EVENT_READ, ready)
        elif not is_there:
            if not target.is_shut:
                target.is_shut = True
                for door, _ in target.doors:
                    self._selector.unregister(door)
                    doors.shut(door)
            target.probe_at = time.monotonic() + LOOK_BEHIND_S

    def _accept_at(self, entrance: Entrance) -> Callable[[socket.socket], None]:
        there = self._links[entrance.from_node, entrance.to_node]
        back = self._links[entrance.to_node, entrance.from_node]

        def accept(near: socket.socket) -> None:
            if CUT in (there.state, back.state):
                _reset(near)
                return
            far = socket.socket()
            for end in (near, far):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe = _Pipe(entrance, near, far, there, back)
            pipe.ready = {end: self._ready_at(pipe, end) for end in (near, far)}
            older = [one for one in self._pipes if one.entrance is entrance]
            if len(older) >= MAX_PIPES_PER_LINK:
                self._end(older[0])
            self._pipes[pipe] = None
            far.connect_ex((HOST, entrance.target_port))
            self._watch(far, selectors.EVENT_WRITE, lambda _events: self._connected(pipe))

        return accept

    def _connected(self, pipe: _Pipe) -> None:
        if pipe not in self._pipes:
            return
        if pipe.far.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or _talks_to_itself(pipe.far):
            self._end(pipe)
            self._look_behind(self._targets[pipe.entrance.target_port])
            return
        pipe.is_connected = True
        self._watch(pipe.far, 0, None)
        self._move(pipe, time.monotonic())

    def _move(self, pipe: _Pipe, now: float, readable: socket.socket | None = None) -> None:
        """Read what may be read, write what is due, and wait for what is to come."""
        try:
            for flow in pipe.flows:
                if flow.source is readable and flow.may_read:
                    flow.read(now)
                flow.write(now)
        except OSError:
            self._end(pipe)
            self._look_behind(self._targets[pipe.entrance.target_port])
            return
        if pipe.back.source_ended and not pipe.there.source_ended:
            self._look_behind(self._targets[pipe.entrance.target_port])  # the node ended it: perhaps by dying
        if pipe.there.is_over and pipe.back.is_over:
            self._end(pipe, reset=False)
            return
        if any(flow.waiting and flow.link.state == PASSING and flow.waiting[0][0] > now for flow in pipe.flows):
            self._late[pipe] = None
        else:
            self._late.pop(pipe, None)
        for end, reading, writing in ((pipe.near, pipe.there, pipe.back), (pipe.far, pipe.back, pipe.there)):
            interest = (selectors.EVENT_READ if reading.may_read else 0) | (
                selectors.EVENT_WRITE if writing.wants_to_write(now) else 0
            )
            self._watch(end, interest, pipe.ready[end])

    def _ready_at(self, pipe: _Pipe, end: socket.socket) -> Callable[[int], None]:
        def ready(events: int) -> None:
            if pipe in self._pipes:
                self._move(pipe, time.monotonic(), end if events & selectors.EVENT_READ else None)

        return ready

    def _watch(self, end: socket.socket, interest: int, ready: Callable[[int], None] | None) -> None:
        before = self._interest.get(end.fileno(), 0)
        if interest == before:
            return
        if not before:
            self._selector.register(end, interest, ready)
        elif not interest:
            self._selector.unregister(end)
        else:
            self._selector.modify(end, interest, ready)
        self._interest[end.fileno()] = interest

    def _end(self, pipe: _Pipe, *, reset: bool = True) -> None:
        del self._pipes[pipe]
        self._late.pop(pipe, None)
        for end in (pipe.near, pipe.far):
            self._watch(end, 0, None)
            self._interest.pop(end.fileno(), None)
            if reset:
                _reset(end)
            else:
                end.close()

    def _timeout(self, look_at: float) -> float:
        """Until the next delayed bytes are due, or it is time to look at a port, or whether we are wanted."""
        now = time.monotonic()
        flows = [flow for pipe in self._late for flow in pipe.flows if flow.waiting and flow.link.state == PASSING]
        later = [flow.waiting[0][0] for flow in flows if flow.waiting[0][0] > now]
        probes = [target.probe_at for target in self._targets.values()]
        return max(0.0, min([look_at, *later, *probes]) - now)

    # --- control ---

    def _accept_control(self, asker: socket.socket) -> None:
        """One line in, one line out; it comes from a command of ours, so waiting for it is no danger to the nodes."""
        with asker:
            asker.settimeout(1)
            with suppress(OSError, ValueError, KeyError, TypeError):
                line = asker.makefile("rb").readline(MAX_QUESTION_BYTES)
                for change in json.loads(line)["changes"]:
                    self._change(LinkChange(*change))
                asker.sendall(json.dumps(self._status()).encode() + b"\n")

    def _change(self, change: LinkChange) -> None:
        link = self._links[change.from_node, change.to_node]
        link.delay_ms = link.delay_ms if change.delay_ms is None else change.delay_ms
        if change.state in STATES:
            link.state = change.state
        now = time.monotonic()
        for pipe in [one for one in self._pipes if link in (one.there.link, one.back.link)]:
            if link.state == CUT:
                self._end(pipe)
            elif pipe.is_connected:
                self._move(pipe, now)

    def _status(self) -> list[LinkStatus]:
        opened: dict[tuple[int, int], int] = {}
        for pipe in self._pipes:
            way = (pipe.entrance.from_node, pipe.entrance.to_node)
            opened[way] = opened.get(way, 0) + 1
        return [
            LinkStatus(*way, link.state, link.delay_ms, opened.get(way, 0)) for way, link in sorted(self._links.items())
        ]


def _talks_to_itself(end: socket.socket) -> bool:
    """Whether a connection to a dead node's port was given that very port, and so reached nobody but itself."""
    try:
        return bool(end.getsockname() == end.getpeername())
    except OSError:
        return True  # reset meanwhile


def _reset(end: socket.socket) -> None:
    """Close so that the other side sees a broken connection, not an orderly end."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


def change_links(control_port: int, changes: Iterable[LinkChange] = ()) -> list[LinkStatus]:
    """Ask the links' process of a running cluster to change some, and hear how all of them are."""
    question = json.dumps({"changes": list(changes)}).encode() + b"\n"
    try:
        with socket.create_connection((HOST, control_port), _ANSWER_TIMEOUT_S) as asking:
            asking.sendall(question)
            answer: Any = json.loads(asking.makefile("rb").readline() or b"null")
    except (OSError, ValueError) as error:
        raise TidelogError(f"the process of the links does not answer: {error}") from None
    if answer is None:
        raise TidelogError("the process of the links refused the change: there is no such link")
    return [LinkStatus(*one) for one in answer]


def main(words: list[str]) -> None:
    """Started with one argument: descriptors and entrances, as JSON."""
    arguments = json.loads(words[0])
    control = socket.socket(fileno=arguments["control"])

    def is_wanted() -> bool:
        if arguments["state_file"] is None:
            return bool(os.getppid() == arguments["parent"])
        try:
            with open(arguments["state_file"], encoding="utf-8") as file:
                return bool(json.load(file)["links"]["pid"] == os.getpid())
        except (OSError, ValueError, KeyError, TypeError):
            return False

    Links([Entrance(*one) for one in arguments["entrances"]], control, is_wanted).run()


if __name__ == "__main__":
    main(sys.argv[1:])
