"""Between the node and the world: effects in order, helpers' results back as events, time, and what a failure does."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import jobs
from tests.runtime.scripted import Client, Running, ScriptedNode, answer_metadata, running
from tests.support.ports import free_ports
from tidelog.effects import Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.events import Event, FlushDone, PeerAnswered, PeerFailed, Request, Tick, WorkDone
from tidelog.runtime import host as host_module
from tidelog.runtime import peers as peers_module
from tidelog.runtime import process as process_module
from tidelog.runtime import server as server_module
from tidelog.runtime.clock import Clock
from tidelog.wire.messages.metadata import MetadataRequest, MetadataResponse


def test_an_answer_can_wait_for_the_disk(tmp_path: Path) -> None:
    waiting: list[Request] = []

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request):
            file = node.storages[0].open("a.log", create=True)
            file.append(b"x")
            waiting.append(event)
            return [Flush(event.slot, node.storages[0], [file], [("checkpoint", b"%d" % file.size)], [""])]
        if isinstance(event, FlushDone):
            assert event.error is None
            request = waiting[event.token]
            checkpoint = node.storages[0].read_file("checkpoint").decode()
            return [Reply(request.connection_id, request.slot, MetadataResponse(cluster_id=checkpoint))]
        return []

    with running(tmp_path, script) as node, Client(node.port) as client:
        for number in range(1, 6):
            assert client.ask() == f"{number}"


def test_work_comes_back_as_an_event(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Tick):
            node.storages[0].replace("a", b"hello")
            return [Work(7, node.storages[0], jobs.copy_upper, ("a", "b"))]
        return []

    with running(tmp_path, script) as node:
        done = node.node.wait_for(WorkDone)
        assert (done.token, done.result, done.error) == (7, 5, None)
        assert node.node.storages[0].read_file("b") == b"HELLO"


def test_two_nodes_talk(tmp_path: Path) -> None:
    with running(tmp_path / "server") as server:
        (dead_port,) = free_ports(1)

        def script(node: ScriptedNode, event: Event) -> list[Effect]:
            if isinstance(event, Tick):
                return [
                    Send(2, "127.0.0.1", server.port, "main", 11, 3, 9, MetadataRequest(), 60_000),
                    Send(3, "127.0.0.1", dead_port, "main", 12, 3, 9, MetadataRequest(), 60_000),
                ]
            return []

        with running(tmp_path / "asking", script) as asking:
            outcomes: list[Any] = []
            while len(outcomes) < 2:
                event = asking.node.events.get(timeout=60)
                if isinstance(event, PeerAnswered | PeerFailed):
                    outcomes.append(event)
            answered, failed = sorted(outcomes, key=lambda event: event.peer_id)
            assert (answered.request_id, answered.body.cluster_id) == (11, "tidelog-node-1")
            assert (failed.request_id, failed.reason) == (12, "connection refused")


def test_an_answer_that_follows_from_a_request_that_could_not_be_sent_leaves_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests to peers leave after the answers of a turn; an answer that comes of them must not wait for a timer."""
    for module, name in ((host_module, "LOOK_AT_SETTINGS_MS"), (server_module, "SWEEP_MS"), (peers_module, "SWEEP_MS")):
        monkeypatch.setattr(module, name, 3_600_000)
    patient = peers_module.PeerSettings(connect_timeout_ms=3_600_000)
    monkeypatch.setattr(process_module, "_peer_settings", lambda _config: patient)
    monkeypatch.setattr(peers_module.PeerConnection, "send", lambda self: self._lose("connection lost"))
    with socket.create_server(("127.0.0.1", 0)) as peer:
        port = peer.getsockname()[1]
        asked: list[Request] = []

        def script(node: ScriptedNode, event: Event) -> list[Effect]:
            if isinstance(event, Request):
                asked.append(event)
                return [Send(2, "127.0.0.1", port, "main", 1, 3, 9, MetadataRequest(), 3_600_000)]
            if isinstance(event, PeerFailed):
                return [Reply(asked[0].connection_id, asked[0].slot, MetadataResponse(cluster_id=event.reason))]
            return []

        with running(tmp_path, script) as node, Client(node.port) as client:
            client.socket.settimeout(20)
            assert client.ask("forward") == "connection lost"


def test_time_passes_when_the_node_asked_for_it(tmp_path: Path) -> None:
    ticks: list[int] = []

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Tick):
            ticks.append(clock.now_ms())
        elif isinstance(event, Request):
            node.wake_at_ms = clock.now_ms() + 50
            return answer_metadata(node, event)
        return []

    clock = Clock()

    with running(tmp_path, script) as running_node, Client(running_node.port) as client:
        running_node.node.wait_for(Tick)
        before_ms = clock.now_ms()
        client.ask()
        running_node.node.wait_for(Tick)
        assert len(ticks) == 2
        assert ticks[1] >= before_ms + 50


def test_tell_is_one_line(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Tick):
            return [Tell("isr-shrunk", {"topic": "t\nx", "isr": [1, 2], "topic_id": bytes(16)}, "warning")]
        return []

    with running(tmp_path, script) as node:
        node.node.wait_for(Tick)
        node.call(lambda: None)
        (line,) = node.log_lines("isr-shrunk")
        assert line["level"] == "warning"
        assert (line["topic"], line["isr"], line["topic_id"]) == ("t\nx", [1, 2], "AAAAAAAAAAAAAAAAAAAAAA")


def test_a_request_that_breaks_the_node_costs_its_own_connection(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.client_id == "poison":
            raise KeyError("a bug")
        if isinstance(event, Request) and event.client_id == "bad answer":
            return [Reply(event.connection_id, event.slot, MetadataResponse(cluster_id=5))]  # type: ignore[arg-type]
        return answer_metadata(node, event)

    with running(tmp_path, script) as node, Client(node.port) as healthy:
        for name, kind in (("poison", "request-failed"), ("bad answer", "answer-failed")):
            with Client(node.port) as client:
                client.send(name)
                assert client.is_closed()
            assert healthy.ask("fine") == "fine"
            assert len(node.log_lines(kind)) == 1
        assert "KeyError: 'a bug'" in node.log_lines("request-failed")[0]["error"]


def test_an_answer_given_twice_is_noticed(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        answer = answer_metadata(node, event)
        return answer * 2 if isinstance(event, Request) and event.client_id == "twice" else answer

    with running(tmp_path, script) as node, Client(node.port) as healthy:
        with Client(node.port) as client:
            client.send("twice")
            assert client.is_closed()
        assert healthy.ask("fine") == "fine"
        assert "slot 0" in node.log_lines("answer-failed")[0]["error"]


def test_anything_else_that_breaks_the_node_ends_it(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, FlushDone):
            raise AssertionError("an invariant")
        return [Flush(1, node.storages[0])] if isinstance(event, Tick) else []

    node = Running(tmp_path / "data", script)
    node.start()
    assert node.join() == 1
    assert node.log_lines("step-failed")[0]["error"] == "AssertionError: an invariant"
    assert node.log_lines("stopped")[0]["level"] == "error"


def test_halt_ends_the_process_with_its_code_after_what_was_answered(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request):
            return [*answer_metadata(node, event), Halt(3, "could lose data")]
        return []

    node = Running(tmp_path / "data", script)
    node.start()
    with Client(node.port) as client:
        assert client.ask("last words") == "last words"
        assert client.is_closed()
    assert node.join() == 3
    assert node.log_lines("stopped")[0]["reason"] == "could lose data"


def test_a_stop_lets_the_node_finish(tmp_path: Path) -> None:
    with running(tmp_path) as node, Client(node.port) as client:
        assert client.ask() == "test"
        assert node.stop() == 0
        assert client.is_closed()
    assert node.log_lines("stopped")[0]["exit_code"] == 0


def test_clients_wait_until_the_node_can_serve_them(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.listener == "CONTROLLER":
            node.serves_clients = True
        elif not node.requests:
            node.serves_clients = False
        return answer_metadata(node, event)

    listeners = ("PLAINTEXT://127.0.0.1:0", "CONTROLLER://127.0.0.1:0")
    with running(tmp_path, script, listeners=listeners, controller_listener_names=("CONTROLLER",)) as node:
        with Client(node.port) as early, Client(node.ports["CONTROLLER"]) as voter:
            early.send("early")
            assert voter.ask("voter") == "voter"
            assert early.receive()[1].cluster_id == "early"
            assert node.node.wait_for(Request).client_id == "voter"


def test_limits_changed_at_run_time_hold_for_the_next_connection(tmp_path: Path) -> None:
    with running(tmp_path, max_connections=1) as node, Client(node.port) as first:
        assert first.ask() == "test"
        with Client(node.port) as second:
            assert second.is_closed()
        node.node.config = node.node.config.replace(max_connections=2)
        node.wait_until(lambda: node.host.server.limits.max_connections == 2)
        with Client(node.port) as third:
            assert third.ask() == "test"
