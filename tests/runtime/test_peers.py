"""Requests to other nodes are answered exactly once, whatever the other node does."""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runtime.scripted import PATIENCE_SECONDS
from tests.support.ports import free_ports
from tidelog.effects import Send
from tidelog.runtime.clock import Clock
from tidelog.runtime.loop import Loop
from tidelog.runtime.peers import Peers, PeerSettings
from tidelog.runtime.receiving import ReceiveMemory
from tidelog.wire.frames import decode_request, encode_response
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

VERSIONS = {3: (0, 12)}


class Bench:
    """Peers on a loop that the test turns, and a server that does what the test says."""

    def __init__(self, **settings: Any) -> None:
        self.loop = Loop(Clock())
        self.outcomes: list[tuple[int, str]] = []
        """Request id, and the answer's name or the reason."""
        self.peers = Peers(
            self.loop,
            ReceiveMemory(),
            lambda peer, request, body: self.outcomes.append((request, f"answered {body.cluster_id}")),
            lambda peer, request, reason: self.outcomes.append((request, reason)),
            PeerSettings(**settings),
        )
        self.loop.at_turn_end.append(self.peers.flush)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(PATIENCE_SECONDS)
        self.port: int = self.server.getsockname()[1]
        self.accepted: list[socket.socket] = []

    def send(self, request_id: int, *, channel: str = "main", timeout_ms: int = 60_000, **options: Any) -> None:
        body = MetadataRequest(topics=[MetadataRequestTopic(name=f"topic {request_id}")])
        host, port = options.get("host", "127.0.0.1"), options.get("port", self.port)
        self.peers.send(Send(2, host, port, channel, request_id, 3, 9, body, timeout_ms))

    def accept(self) -> socket.socket:
        self.server.setblocking(False)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.loop.turn(10)
            try:
                connection, _ = self.server.accept()
            except BlockingIOError:
                assert time.monotonic() < deadline
                continue
            connection.settimeout(PATIENCE_SECONDS)
            self.accepted.append(connection)
            return connection

    def read_request(self, connection: socket.socket) -> tuple[int, str]:
        """Correlation id and topic of the next request."""
        connection.settimeout(0.01)
        data = bytearray()
        size = 4
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(data) < size:
            self.loop.turn(10)
            try:
                part = connection.recv(size - len(data))
            except TimeoutError:
                assert time.monotonic() < deadline
                continue
            assert part, "closed"
            data += part
            if len(data) == 4 and size == 4:
                size = 4 + struct.unpack(">i", data)[0]
        request = decode_request(memoryview(data)[4:], VERSIONS)
        assert request.client_id == "tidelog"
        return request.correlation_id, request.body.topics[0].name

    def answer(self, connection: socket.socket, correlation_id: int, name: str) -> None:
        connection.settimeout(PATIENCE_SECONDS)
        parts = encode_response(3, 9, correlation_id, MetadataResponse(cluster_id=name))
        connection.sendall(b"".join(part for part in parts if isinstance(part, bytes)))

    def wait_for(self, count: int, within_s: float = PATIENCE_SECONDS) -> list[tuple[int, str]]:
        deadline = time.monotonic() + within_s
        while len(self.outcomes) < count:
            assert time.monotonic() < deadline, self.outcomes
            self.loop.turn(50)
        return self.outcomes

    def close(self) -> None:
        self.peers.close_all()
        self.loop.close()
        self.server.close()
        for connection in self.accepted:
            connection.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_a_connection_reset_while_it_is_looked_at_fails_its_requests_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between asking whether a socket is connected and asking to whom, the other side may reset it."""

    def not_connected(_socket: socket.socket) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "getpeername", not_connected)
        bench.send(1)
        assert bench.wait_for(1) == [(1, "connection lost: Transport endpoint is not connected")]
    bench.send(2)
    bench.accept().close()
    connection = bench.accept()
    correlation_id, _ = bench.read_request(connection)
    bench.answer(connection, correlation_id, "again")
    assert bench.wait_for(2)[1] == (2, "answered again")


def test_an_address_can_stand_for_another(bench: Bench) -> None:
    """What `tidelog chaos` cuts are addresses that nodes were given instead of each other's own."""
    bench.peers.settings = PeerSettings(address_overrides={("told.example", 9): ("127.0.0.1", bench.port)})
    bench.send(1, host="told.example", port=9)
    connection = bench.accept()
    correlation_id, _ = bench.read_request(connection)
    bench.answer(connection, correlation_id, "there")
    assert bench.wait_for(1) == [(1, "answered there")]


def test_requests_are_pipelined_on_one_connection_and_answered_in_order(bench: Bench) -> None:
    for number in range(5):
        bench.send(number)
    connection = bench.accept()
    asked = [bench.read_request(connection) for _ in range(5)]
    assert [name for _, name in asked] == [f"topic {number}" for number in range(5)]
    for correlation_id, name in asked:
        bench.answer(connection, correlation_id, name)
    assert bench.wait_for(5) == [(number, f"answered topic {number}") for number in range(5)]
    bench.send(5)
    correlation_id, name = bench.read_request(connection)
    bench.answer(connection, correlation_id, name)
    assert bench.wait_for(6)[-1] == (5, "answered topic 5")


def test_channels_do_not_wait_for_each_other(bench: Bench) -> None:
    bench.send(1, channel="fetch")
    parked = bench.accept()
    bench.read_request(parked)
    bench.send(2, channel="control")
    control = bench.accept()
    correlation_id, name = bench.read_request(control)
    bench.answer(control, correlation_id, name)
    assert bench.wait_for(1) == [(2, "answered topic 2")]


def test_a_lost_connection_fails_everything_on_it_once(bench: Bench) -> None:
    bench.send(1)
    bench.send(2)
    connection = bench.accept()
    bench.read_request(connection)
    connection.close()
    outcomes = bench.wait_for(2)
    assert [request for request, _ in outcomes] == [1, 2]
    assert all(reason.startswith("connection ") for _, reason in outcomes)
    bench.send(3)
    again = bench.accept()
    correlation_id, name = bench.read_request(again)
    bench.answer(again, correlation_id, name)
    assert bench.wait_for(3)[-1] == (3, "answered topic 3")


def test_a_refused_connection_fails_at_once_and_the_next_try_waits(bench: Bench) -> None:
    (port,) = free_ports(1)
    bench.send(1, port=port)
    assert bench.wait_for(1) == [(1, "connection refused")]
    started = time.monotonic()
    for number in range(2, 6):
        bench.send(number, port=port)
        bench.wait_for(number)
    # 20, 40, 80, 160 ms between the attempts
    assert time.monotonic() - started >= 0.25
    assert {reason for _, reason in bench.outcomes} == {"connection refused"}


def test_the_distance_between_tries_is_bounded() -> None:
    bench = Bench(backoff_ms=1, backoff_max_ms=4)
    (port,) = free_ports(1)
    for number in range(1, 30):  # the last would be a quarter of an hour away
        bench.send(number, port=port)
        bench.wait_for(number)
    bench.close()


def test_no_answer_in_time_ends_the_connection(bench: Bench) -> None:
    bench.send(1, timeout_ms=60_000)
    connection = bench.accept()
    bench.read_request(connection)
    bench.send(2, timeout_ms=30)
    assert bench.wait_for(2) == [(1, "no answer in time"), (2, "no answer in time")]
    connection.settimeout(PATIENCE_SECONDS)
    while connection.recv(4096):
        pass


def test_no_connection_in_time_fails_the_request(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.peers.resolver, "resolve", lambda host, port, then: None)
    bench.send(1, timeout_ms=30)
    assert bench.wait_for(1) == [(1, "no connection in time")]


def test_a_peer_that_does_not_take_the_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(connect_timeout_ms=30)
    monkeypatch.setattr(bench.peers.resolver, "resolve", lambda host, port, then: None)
    bench.send(1)
    assert bench.wait_for(1) == [(1, "no connection within 30 ms")]
    bench.close()


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack(">i", -1),
        struct.pack(">ii", 4, 1),
        struct.pack(">iib", 5, 999_999, 0),
        struct.pack(">i", 30) + b"\xff" * 30,
    ],
    ids=["length", "short", "other correlation id", "garbage"],
)
def test_an_unreadable_answer_fails_everything_on_the_connection(bench: Bench, answer: bytes) -> None:
    bench.send(1)
    bench.send(2)
    connection = bench.accept()
    bench.read_request(connection)
    connection.sendall(answer)
    outcomes = bench.wait_for(2)
    assert [request for request, _ in outcomes] == [1, 2]
    assert all(reason.startswith("unreadable answer") for _, reason in outcomes)


def test_names_are_resolved_and_unknown_ones_fail(bench: Bench) -> None:
    bench.send(1, host="localhost")
    connection = bench.accept()
    correlation_id, name = bench.read_request(connection)
    bench.answer(connection, correlation_id, name)
    bench.wait_for(1)
    # To learn that nobody has a name may take long, where another machine is asked.
    bench.peers.settings = PeerSettings(connect_timeout_ms=120_000)
    bench.send(2, host="no-such-host.invalid", timeout_ms=120_000)
    assert "no-such-host.invalid has no address" in bench.wait_for(2, within_s=120)[1][1]


def test_every_address_of_a_name_is_tried(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name has often one of IPv6 and one of IPv4, and a node may listen at one of them only."""
    nobody, nobody_either = free_ports(2)

    def two_addresses(ports: list[int]) -> Any:
        def answer(name: object, port: int, **options: int) -> Any:
            if options["flags"] & socket.AI_NUMERICHOST:
                raise socket.gaierror("not a number")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in ports]

        return answer

    with monkeypatch.context() as patched:
        patched.setattr("tidelog.runtime.resolver.socket.getaddrinfo", two_addresses([nobody, bench.port]))
        bench.send(1, host="both")
        connection = bench.accept()
        correlation_id, name = bench.read_request(connection)
        bench.answer(connection, correlation_id, name)
        assert bench.wait_for(1) == [(1, "answered topic 1")]
        patched.setattr("tidelog.runtime.resolver.socket.getaddrinfo", two_addresses([nobody, nobody_either]))
        bench.send(2, host="neither")
        assert bench.wait_for(2)[1] == (2, "connection refused")


def test_unanswered_requests_are_bounded() -> None:
    bench = Bench(max_requests=3)
    for number in range(5):
        bench.send(number)
    assert bench.outcomes == [(3, "3 requests are unanswered"), (4, "3 requests are unanswered")]
    bench.close()
    assert sorted(bench.outcomes)[:3] == [(number, "the node stops") for number in range(3)]


def test_large_answers_come_whole(bench: Bench) -> None:
    name = "x" * 30_000
    for number in range(20):
        bench.send(number)
    connection = bench.accept()
    for _ in range(20):
        correlation_id, _ = bench.read_request(connection)
        bench.answer(connection, correlation_id, name)
    assert bench.wait_for(20) == [(number, f"answered {name}") for number in range(20)]
