"""What clients rely on: answers in order, bounds that hold, and bad input that hurts nobody else."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import PATIENCE_SECONDS, Client, Running, ScriptedNode, answer_metadata, running
from tidelog.effects import Close, Effect, Reply
from tidelog.errors import ConfigError
from tidelog.events import ConnectionClosed, Event, Request
from tidelog.runtime import connection as connection_module
from tidelog.runtime import process as process_module
from tidelog.runtime import server as server_module
from tidelog.runtime.receiving import OWN_BUSY_BYTES
from tidelog.wire.frames import decode_request
from tidelog.wire.messages.api_versions import ApiVersionsRequest
from tidelog.wire.messages.metadata import MetadataResponse
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as started:
        yield started


def name_of(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1].cluster_id


class Held:
    """A script that keeps requests until the test answers them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request):
            self.requests.append(event)
        elif isinstance(event, Answers):
            return [
                Reply(request.connection_id, request.slot, MetadataResponse(cluster_id=request.client_id))
                for request in event.requests
            ]
        return []


class Answers:
    """Not an event of the product: lets a test have requests answered in an order of its own."""

    def __init__(self, requests: list[Request]) -> None:
        self.requests = requests


# --- order ---


def test_pipelined_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held) as node, Client(node.port) as client:
        client.socket.sendall(b"".join(client.request_bytes(f"client {number}") for number in range(50)))
        node.wait_until(lambda: len(held.requests) == 50)
        node.deliver(Answers(held.requests[::-1]))  # type: ignore[arg-type]
        for number in range(50):
            assert name_of(client.receive()) == (number + 1, f"client {number}")


def test_a_request_without_an_answer_holds_up_nobody(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.client_id == "acks=0":
            return [Reply(event.connection_id, event.slot, None)]
        return answer_metadata(node, event)

    with running(tmp_path, script) as node, Client(node.port) as client:
        client.send("acks=0")
        client.send("after")
        assert name_of(client.receive()) == (2, "after")


def test_a_request_says_where_it_came_from(tmp_path: Path) -> None:
    listeners = ("PLAINTEXT://127.0.0.1:0", "INSIDE://127.0.0.1:0")
    with running(tmp_path, listeners=listeners) as node:
        with Client(node.ports["INSIDE"]) as inside, Client(node.ports["PLAINTEXT"]) as outside:
            inside.ask("a")
            outside.ask("b")
        first, second = node.node.wait_for(Request), node.node.wait_for(Request)
        assert (first.listener, first.client_address, first.client_id) == ("INSIDE", "127.0.0.1", "a")
        assert (second.listener, second.api_key, second.api_version) == ("PLAINTEXT", 3, 9)
        assert first.connection_id != second.connection_id


# --- frames ---


def test_a_frame_may_come_byte_by_byte_or_many_at_once(node: Running) -> None:
    with Client(node.port) as client:
        for byte in client.request_bytes("slowly"):
            client.socket.sendall(bytes([byte]))
        assert name_of(client.receive()) == (1, "slowly")
        many = [client.request_bytes(f"{number}") for number in range(1000)]
        client.socket.sendall(b"".join(many)[:-3])
        for number in range(999):
            assert name_of(client.receive()) == (number + 2, f"{number}")
        client.socket.sendall(many[-1][-3:])
        assert name_of(client.receive()) == (1001, "999")


def produce(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


@pytest.mark.parametrize("size", [1000, 200_000, 1_000_000, 20_000_000])
def test_records_arrive_whole_and_writable(tmp_path: Path, size: int) -> None:
    seen: list[bytes] = []

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.api_key == 0:
            records = event.body.topic_data[0].partition_data[0].records
            seen.append(bytes(records))
            records[:4] = b"done"
            assert bytes(records[:5]) == b"done" + seen[-1][4:5]
            return [Reply(event.connection_id, event.slot, None)]
        return answer_metadata(node, event)

    pattern = bytes(range(256))
    sent = [(pattern[turn:] + pattern[:turn]) * (size // 256) for turn in range(4)]
    with running(tmp_path, script) as node, Client(node.port) as client:
        for records in sent:
            client.send("producer", 0, 9, produce(records))
        assert client.ask("after") == "after"
        assert seen == sent


def test_memory_follows_what_came_not_what_was_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 20)
    monkeypatch.setattr(server_module, "BUFFER_KEPT_MS", 40)
    with running(tmp_path) as node, Client(node.port) as claims, Client(node.port) as busy:
        claims.socket.sendall(struct.pack(">i", 100_000_000) + bytes(1000))
        busy.socket.sendall(struct.pack(">i", 5_000_000) + bytes(4_000_000))
        node.wait_until(lambda: node.host.server.memory.owned_bytes > 4_000_000)
        assert node.call(lambda: node.host.server.memory.owned_bytes) < 8_000_000 + OWN_BUSY_BYTES
        busy.socket.close()
        node.wait_until(lambda: node.host.server.memory.owned_bytes < 10_000)


def test_a_quiet_connection_gives_its_buffer_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 20)
    monkeypatch.setattr(server_module, "BUFFER_KEPT_MS", 40)

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        return [Reply(event.connection_id, event.slot, None)] if isinstance(event, Request) else []

    with running(tmp_path, script) as node, Client(node.port) as client:
        client.send("producer", 0, 9, produce(bytes(3_000_000)))
        node.node.wait_for(Request)
        node.wait_until(lambda: node.host.server.memory.owned_bytes == 0)
        client.send("producer", 0, 9, produce(bytes(3_000_000)))
        assert len(node.node.wait_for(Request).body.topic_data) == 1


# --- bounds ---


def test_requests_in_flight_are_bounded(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held, max_inflight_requests_per_connection=7) as node:
        with Client(node.port) as client, Client(node.port) as other:
            client.socket.sendall(b"".join(client.request_bytes(f"{number}") for number in range(100)))
            node.wait_until(lambda: len(held.requests) == 7)
            other.send("other")
            node.wait_until(lambda: len(held.requests) == 8)
            answered = 0
            while answered < 100:
                batch, held.requests[:] = list(held.requests), []
                assert len(batch) <= 8
                node.deliver(Answers(batch))  # type: ignore[arg-type]
                for request in batch:
                    if request.client_id != "other":
                        assert name_of(client.receive()) == (answered + 1, f"{answered}")
                        answered += 1
                node.wait_until(lambda count=answered: count == 100 or bool(held.requests))  # type: ignore[misc]
            assert name_of(other.receive()) == (1, "other")


def test_a_client_that_does_not_read_stops_being_read(tmp_path: Path) -> None:
    answer = "x" * 30_000

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.client_id == "slow":
            return [Reply(event.connection_id, event.slot, MetadataResponse(cluster_id=answer))]
        return answer_metadata(node, event)

    with running(tmp_path, script, max_queued_response_bytes_per_connection=1_000_000) as node:
        with Client(node.port, receive_buffer_bytes=4096) as slow, Client(node.port) as healthy:
            slow.socket.sendall(b"".join(slow.request_bytes("slow") for _ in range(2000)))
            for number in range(50):
                assert healthy.ask(f"healthy {number}") == f"healthy {number}"
            queued = node.call(
                lambda: max(connection.sender.queued_bytes for connection in node.host.server.connections.values())
            )
            assert queued < 1_000_000 + 2 * len(answer)
            assert node.node.requests < 1000
            for number in range(2000):
                assert name_of(slow.receive()) == (number + 1, answer)


def test_receive_memory_is_bounded_without_a_deadlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SWEEP_MS", 20)
    monkeypatch.setattr(server_module, "BUFFER_KEPT_MS", 40)

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        return [Reply(event.connection_id, event.slot, None)] if isinstance(event, Request) else []

    with running(tmp_path, script, queued_max_request_bytes=1_500_000) as node:
        clients = [Client(node.port) for _ in range(4)]
        request = clients[0].request_bytes("producer", 0, 9, produce(bytes(1_000_000)))
        for client in clients[:2]:
            client.socket.sendall(request[:900_000])
        node.wait_until(lambda: node.host.server.memory.is_short)
        for client in clients[2:]:
            client.socket.sendall(request[:1_000])
        node.wait_until(lambda: len(node.host.server._waiting_for_memory) == 2)
        assert node.call(lambda: node.host.server.memory.owned_bytes) < 2_500_000, "what has begun may come to its end"
        for client, sent in zip(clients, (900_000, 900_000, 1_000, 1_000), strict=True):
            client.socket.sendall(request[sent:])
        for _ in clients:
            node.node.wait_for(Request)
        for client in clients:
            client.socket.close()


def test_clients_that_stop_half_way_do_not_silence_the_quorum(tmp_path: Path) -> None:
    listeners = ("PLAINTEXT://127.0.0.1:0", "CONTROLLER://127.0.0.1:0")
    with running(
        tmp_path,
        listeners=listeners,
        controller_listener_names=("CONTROLLER",),
        queued_max_request_bytes=500_000,
    ) as node:
        with Client(node.port) as stuck, Client(node.ports["CONTROLLER"]) as voter:
            assert voter.ask("before") == "before"
            stuck.socket.sendall(stuck.request_bytes("producer", 0, 9, produce(bytes(1_000_000)))[:900_000])
            node.wait_until(lambda: node.host.server.memory.is_short)
            assert voter.ask("voter") == "voter"


def test_connections_are_bounded(tmp_path: Path) -> None:
    with running(tmp_path, max_connections=2) as node:
        with Client(node.port) as first, Client(node.port) as second, Client(node.port) as third:
            assert (first.ask("1"), second.ask("2")) == ("1", "2")
            assert third.is_closed()
            first.socket.close()
            node.wait_until(lambda: len(node.host.server.connections) == 1)
        with Client(node.port) as fourth:
            assert fourth.ask("4") == "4"
        (line,) = node.log_lines("connection-refused")
        assert "max.connections is 2" in line["reason"]


def test_clients_cannot_take_the_descriptors_that_files_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "raise_descriptor_limit", lambda: 80)
    with running(tmp_path) as node:
        clients = [Client(node.port) for _ in range(8)]
        assert [client.ask("in") for client in clients] == ["in"] * 8
        with Client(node.port) as ninth:
            assert ninth.is_closed()
        for client in clients:
            client.socket.close()
        (line,) = node.log_lines("connection-refused")
        assert "descriptors for 8 connections" in line["reason"]


def test_connections_from_one_address_are_bounded_but_not_those_of_the_quorum(tmp_path: Path) -> None:
    listeners = ("PLAINTEXT://127.0.0.1:0", "CONTROLLER://127.0.0.1:0")
    with running(
        tmp_path,
        listeners=listeners,
        controller_listener_names=("CONTROLLER",),
        max_connections_per_ip=1,
        max_connections_per_ip_overrides="127.0.0.9:5",
    ) as node:
        with Client(node.port) as first, Client(node.port) as second:
            assert first.ask() == "test"
            assert second.is_closed()
            with Client(node.ports["CONTROLLER"]) as third, Client(node.ports["CONTROLLER"]) as fourth:
                assert (third.ask(), fourth.ask()) == ("test", "test")


def test_new_connections_in_a_second_are_bounded(tmp_path: Path) -> None:
    with running(tmp_path, max_connection_creation_rate=3) as node:
        clients = [Client(node.port) for _ in range(5)]
        assert [client.ask(f"{number}") for number, client in enumerate(clients)] == ["0", "1", "2", "3", "4"]
        for client in clients:
            client.socket.close()


def test_two_listeners_that_must_wait_at_the_same_moment_both_go_on(tmp_path: Path) -> None:
    listeners = ("PLAINTEXT://127.0.0.1:0", "INSIDE://127.0.0.1:0")
    with running(tmp_path, listeners=listeners, max_connection_creation_rate=1) as node:
        # While the loop is held here, clients come to both, so that one turn finds both ready.
        clients = node.call(lambda: [Client(node.ports[name]) for name in ("PLAINTEXT", "INSIDE", "PLAINTEXT")])
        assert [client.ask(f"{number}") for number, client in enumerate(clients)] == ["0", "1", "2"]
        for client in clients:
            client.socket.close()


def test_clients_that_come_too_fast_do_not_shut_out_the_quorum(tmp_path: Path) -> None:
    listeners = ("PLAINTEXT://127.0.0.1:0", "CONTROLLER://127.0.0.1:0")
    with running(
        tmp_path, listeners=listeners, controller_listener_names=("CONTROLLER",), max_connection_creation_rate=0
    ) as node:
        with Client(node.port), Client(node.ports["CONTROLLER"]) as voter:
            assert voter.ask("voter") == "voter"


def test_a_silent_connection_is_closed_and_one_that_waits_is_not(tmp_path: Path) -> None:
    held = Held()
    # Long enough for the one that asks to be heard before it counts as silent.
    with running(tmp_path, held, connections_max_idle_ms=1_000) as node, Client(node.port) as waiting:
        waiting.send("long poll")
        node.wait_until(lambda: len(held.requests) == 1)
        with Client(node.port) as silent:
            assert silent.is_closed()
            closed = node.node.wait_for(ConnectionClosed)
            assert "silent" in closed.reason
            assert not closed.by_peer
            node.deliver(Answers(held.requests))  # type: ignore[arg-type]
            assert name_of(waiting.receive()) == (1, "long poll")


# --- bad input ---


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, -1)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: tidelog\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 2_000_000_000),
        framed(b"\x00"),
        framed(b"\xff" * 50),
        framed(header(3, 9)),  # the body is missing
        framed(header(3, 1) + struct.pack(">i", 1_000_000_000)),  # an array that cannot be there
        framed(header(9999, 0)),
        framed(header(-1, 0)),
        framed(header(3, 99)),
        framed(header(0, 2)),
        framed(struct.pack(">hhih", 3, 9, 1, 30_000)),
    ],
    ids=lambda value: value[:24].hex(),
)
def test_bad_input_ends_its_own_connection_with_one_line(node: Running, garbage: bytes) -> None:
    with Client(node.port) as healthy, Client(node.port) as bad:
        assert healthy.ask("before") == "before"
        assert bad.ask("still fine") == "still fine"
        bad.socket.sendall(garbage)
        assert bad.is_closed()
        assert healthy.ask("after") == "after"
        assert not node.node.wait_for(ConnectionClosed).by_peer
        (line,) = node.log_lines("connection-closed")
        assert line["address"] == "127.0.0.1"
        assert line["level"] == "warning"


def test_a_mistake_of_ours_costs_one_connection(node: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(frame: memoryview, supported: Any) -> Any:
        if b"poison" in bytes(frame):
            raise ZeroDivisionError("on purpose")
        return decode_request(frame, supported)

    monkeypatch.setattr(connection_module, "decode_request", decode)
    with Client(node.port) as healthy, Client(node.port) as unlucky:
        unlucky.send("poison")
        assert unlucky.is_closed()
        assert healthy.ask("fine") == "fine"
        assert node.log_lines("connection-failed")[0]["error"] == "ZeroDivisionError: on purpose"


def test_answers_before_the_bad_input_still_leave(node: Running) -> None:
    with Client(node.port) as client:
        client.socket.sendall(client.request_bytes("good") + struct.pack(">i", -5))
        assert name_of(client.receive()) == (1, "good")
        assert client.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_in_the_form_of_version_0(node: Running) -> None:
    with Client(node.port) as client:
        client.socket.sendall(framed(header(18, 99, 7) + b"\x00whatever"))
        correlation_id, body = client.receive(18, 0)
        assert correlation_id == 7
        assert body.error_code == 35
        assert [(key.api_key, key.min_version, key.max_version) for key in body.api_keys] == [(18, 0, 4)]
        client.send("again", 18, 4, ApiVersionsRequest(client_software_name="x", client_software_version="1"))
        assert node.node.wait_for(Request).api_version == 4


def test_the_size_of_a_request_is_bounded(tmp_path: Path) -> None:
    with running(tmp_path, socket_request_max_bytes=1000) as node, Client(node.port) as client:
        assert client.ask("x" * 900) == "x" * 900
        client.socket.sendall(struct.pack(">i", 1001))
        assert client.is_closed()


def test_many_bad_clients_do_not_flood_the_log(node: Running) -> None:
    for _ in range(120):
        with Client(node.port) as bad:
            bad.socket.sendall(struct.pack(">i", -1))
            assert bad.is_closed()
    assert node.node.requests == 0
    assert 50 <= len(node.log_lines("connection-closed")) <= 120


# --- endings ---


def test_the_node_hears_how_a_connection_ended(node: Running) -> None:
    with Client(node.port) as client:
        client.ask()
    closed = node.node.wait_for(ConnectionClosed)
    assert closed.by_peer
    with Client(node.port) as client:
        client.ask()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reset = node.node.wait_for(ConnectionClosed)
    assert reset.by_peer
    assert reset.connection_id != closed.connection_id
    assert node.log_lines("connection-closed") == []


def test_the_node_can_close_a_connection(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        return [Close(event.connection_id, "not here")] if isinstance(event, Request) else []

    with running(tmp_path, script) as node, Client(node.port) as client:
        client.send("unwanted")
        assert client.is_closed()
        assert node.node.wait_for(ConnectionClosed).reason == "not here"
        assert node.log_lines("connection-closed")[0]["reason"] == "not here"


def test_an_answer_to_a_client_that_left_is_dropped(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held) as node:
        with Client(node.port) as client:
            client.send("gone")
            node.wait_until(lambda: len(held.requests) == 1)
        node.node.wait_for(ConnectionClosed)
        node.deliver(Answers(held.requests))  # type: ignore[arg-type]
        with Client(node.port) as client:
            client.send("here")
            node.wait_until(lambda: len(held.requests) == 2)
            node.deliver(Answers(held.requests[1:]))  # type: ignore[arg-type]
            assert name_of(client.receive()) == (1, "here")


def test_a_port_in_use_is_one_clear_line(node: Running, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on PLAINTEXT://127\.0\.0\.1:\d+: .*in use"):
        with running(tmp_path / "other", listeners=(f"PLAINTEXT://127.0.0.1:{node.port}",)):
            pass


def test_an_empty_host_is_every_interface(tmp_path: Path) -> None:
    with running(tmp_path, listeners=("PLAINTEXT://:0",)) as node:
        with Client(node.port) as client:
            assert client.ask() == "test"
        assert node.node.wait_for(Request).client_address == "127.0.0.1"
        (advertised,) = node.node.config.advertised_addresses
        assert advertised.host
        assert advertised.port == node.port
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", node.port), timeout=PATIENCE_SECONDS):
                node.wait_until(lambda: any(one.address == "::1" for one in node.host.server.connections.values()))
