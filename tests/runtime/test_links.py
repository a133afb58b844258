"""Links between nodes do what they are told: bytes wait in order, connections break, and others are left alone."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.config import parse_properties
from tidelog.config.listeners import parse_address_overrides
from tidelog.errors import TidelogError
from tidelog.runtime.cluster_plan import ClusterPlan, NodePlan
from tidelog.runtime.link_process import open_links
from tidelog.runtime.links import CUT, HELD, PASSING, LinkChange, Links, change_links


class Wire:
    """Two ends that stand for nodes 1 and 2, and the process between them."""

    def __init__(self, directory: Path) -> None:
        self.listeners = {node: socket.create_server(("127.0.0.1", 0)) for node in (1, 2)}
        ports = {node: listener.getsockname()[1] for node, listener in self.listeners.items()}
        nodes = tuple(NodePlan(node, ("broker",), str(directory), port, None) for node, port in ports.items())
        self.opened = open_links(ClusterPlan(str(directory), nodes, is_new=True), str(directory / "state.json"))
        text = parse_properties(f"peer.address.overrides={self.opened.overrides[1]}")["peer.address.overrides"]
        self.entrance = parse_address_overrides("peer.address.overrides", [text])["127.0.0.1", ports[2]]
        self.held: list[socket.socket] = []

    def change(self, *changes: LinkChange) -> dict[tuple[int, int], tuple[str, int, int]]:
        found = change_links(self.opened.record.control_port, changes)
        return {(one.from_node, one.to_node): one[2:] for one in found}

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """Node 1's end of a new connection to node 2, and node 2's."""
        near = socket.create_connection(self.entrance, 60)
        self.listeners[2].settimeout(60)
        far, _ = self.listeners[2].accept()
        for end in (near, far):
            end.settimeout(60)
            self.held.append(end)
        return near, far

    def close(self) -> None:
        for one in (*self.listeners.values(), *self.held):
            one.close()
        self.opened.record.process.kill_group()
        self.opened.child.wait(60)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    wire.close()


def receive(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = source.recv(count - len(data))
        assert part, f"ended after {len(data)} of {count} bytes"
        data += part
    return bytes(data)


def is_silent(source: socket.socket) -> bool:
    source.settimeout(0.2)
    try:
        return not source.recv(1)
    except TimeoutError:
        return True
    finally:
        source.settimeout(60)


def test_bytes_and_ends_pass_both_ways(wire: Wire) -> None:
    near, far = wire.connect()
    near.sendall(b"question")
    assert receive(far, 8) == b"question"
    much = bytes(range(256)) * 20_000
    far.settimeout(0.01)
    sent = got = 0
    while got < len(much):  # more than buffers hold: both ends have to move
        if sent < len(much):
            with contextlib.suppress(TimeoutError):
                sent += far.send(much[sent : sent + 65_536])
        part = near.recv(1 << 20)
        assert part == much[got : got + len(part)]
        got += len(part)
    near.shutdown(socket.SHUT_WR)
    far.settimeout(60)
    assert far.recv(1) == b"", "an orderly end arrives as one"
    far.sendall(b"last")
    assert receive(near, 4) == b"last"
    far.close()
    assert near.recv(1) == b""


def test_what_is_held_waits_and_comes_in_order(wire: Wire) -> None:
    near, far = wire.connect()
    wire.change(LinkChange(1, 2, HELD))
    near.sendall(b"one ")
    near.sendall(b"two")
    assert is_silent(far)
    far.sendall(b"other way")
    assert receive(near, 9) == b"other way", "a link goes one way"
    near.close()
    assert is_silent(far), "that it has ended is not known either"
    assert wire.change(LinkChange(1, 2, PASSING))[1, 2][0] == PASSING
    assert receive(far, 7) == b"one two"
    assert far.recv(1) == b""


def test_a_cut_breaks_connections_and_refuses_new_ones(wire: Wire) -> None:
    near, far = wire.connect()
    near.sendall(b"x")
    assert receive(far, 1) == b"x"
    assert wire.change(LinkChange(2, 1, CUT))[2, 1] == (CUT, 0, 0)
    for end in (near, far):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    with pytest.raises(ConnectionResetError), socket.create_connection(wire.entrance, 60) as refused:
        refused.recv(1)
    wire.change(LinkChange(2, 1, PASSING))
    near, far = wire.connect()
    near.sendall(b"y")
    assert receive(far, 1) == b"y"


def test_a_slow_link_is_late_and_keeps_order(wire: Wire) -> None:
    near, far = wire.connect()
    wire.change(LinkChange(1, 2, delay_ms=150))
    began = time.monotonic()
    near.sendall(b"a")
    near.sendall(b"b")
    assert receive(far, 2) == b"ab"
    assert time.monotonic() - began >= 0.15
    wire.change(LinkChange(1, 2, delay_ms=0))
    near.sendall(b"c")
    assert receive(far, 1) == b"c"


def test_a_dead_node_refuses_as_it_would_without_links_until_it_listens_again(wire: Wire) -> None:
    """A connection that is taken and then reset looks like a node that lives: nobody would be fenced for it."""
    near, far = wire.connect()
    port = wire.listeners[2].getsockname()[1]
    wire.listeners[2].close()
    far.close()
    assert near.recv(1) == b""
    deadline = time.monotonic() + 60
    while True:
        try:
            with contextlib.suppress(ConnectionResetError):  # one that the closing door met half way
                socket.create_connection(wire.entrance, 60).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < deadline, "the dead node still takes connections"
    assert [one.state for one in change_links(wire.opened.record.control_port)] == [PASSING, PASSING]
    wire.listeners[2] = socket.create_server(("127.0.0.1", port))
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            near = socket.create_connection(wire.entrance, 60)
            break
        assert time.monotonic() < deadline, "the node that is back is still refused"
    wire.held.append(near)
    near.sendall(b"again")
    wire.listeners[2].settimeout(60)
    data = b""
    while not data:  # whoever looked whether somebody listens has said nothing
        far, _ = wire.listeners[2].accept()
        wire.held.append(far)
        far.settimeout(60)
        data = far.recv(5)
    assert data == b"again"


def test_the_process_ends_when_nobody_wants_it_any_more() -> None:
    """Whoever started it may have been killed, and its directory removed."""
    asked = iter([True, False])
    with socket.create_server(("127.0.0.1", 0)) as control:
        Links([], control, lambda: next(asked), look_every_s=0.01).run()
    assert next(asked, None) is None


def test_a_link_that_is_not_there_is_refused(wire: Wire) -> None:
    with pytest.raises(TidelogError, match="no such link"):
        wire.change(LinkChange(1, 7, CUT))
    assert wire.change()[1, 2] == (PASSING, 0, 0), "and the process goes on"
