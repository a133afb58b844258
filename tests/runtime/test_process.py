"""A node as a process: signals, exit codes, refusals that leave everything as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.scripted import Client, Running, running
from tidelog.config import NodeConfig
from tidelog.errors import DirectoryError
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.process import _peer_settings
from tidelog.runtime.resolver import told_host

PROGRAM = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
from tests.runtime.scripted import ScriptedNode, answer_metadata
from tidelog.config import NodeConfig
from tidelog.effects import Halt
from tidelog.events import StopRequested
from tidelog.runtime.process import run_node

class Stubborn(ScriptedNode):
    def step(self, event, now_ms):
        if isinstance(event, StopRequested) and sys.argv[2] == "stubborn":
            return []
        return super().step(event, now_ms)

def started(host, config):
    print(config.listener_addresses[0].port, flush=True)

config = NodeConfig(node_id=1, log_dirs=(sys.argv[1],), listeners=("PLAINTEXT://127.0.0.1:0",))
sys.exit(run_node(
    config,
    node_factory=lambda config, storages, seed, now_ms: Stubborn(config, storages, answer_metadata),
    started=started,
))
"""


@contextmanager
def process(directory: Path, behaviour: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A scripted node in a process of its own, and its port."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(directory), behaviour],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield child, int(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_a_clean_stop(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path, "obedient") as (child, port):
        with Client(port) as client:
            assert client.ask("hello") == "hello"
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0
        lines = [line.split(maxsplit=3)[2:] for line in errors.splitlines()]
        assert [words[1].split()[0] for words in lines] == ["listening", "stop-requested", "stopped"]


def test_a_terminal_that_is_closed_is_told_of_twice_and_is_a_clean_stop(tmp_path: Path) -> None:
    with process(tmp_path, "stubborn") as (child, port):
        for number in (signal.SIGHUP, signal.SIGHUP):
            child.send_signal(number)
        with Client(port) as client:
            assert client.ask("still") == "still"


def test_a_setting_to_be_careful_with_is_warned_about(tmp_path: Path) -> None:
    with running(tmp_path / "old", replica_lag_max_messages=4000) as node:
        (line,) = node.log_lines("caution")
        assert (line["level"], line["setting"]) == ("warning", "replica.lag.max.messages")
        assert "healthy followers" in line["reason"]
    with running(tmp_path / "tuned", socket_send_buffer_bytes=1 << 20, socket_receive_buffer_bytes=102_400) as node:
        (line,) = node.log_lines("caution")
        assert line["setting"] == "socket.send.buffer.bytes", "the other has its default"
        assert line["reason"] == "it has no effect: the system sizes the buffers of sockets"
    with running(tmp_path / "usual") as node:
        assert node.log_lines("caution") == []


def test_other_nodes_are_told_a_host_that_they_can_reach(tmp_path: Path) -> None:
    """A quorum whose voters tell each other of an empty host never has a leader."""
    with running(
        tmp_path,
        listeners=("PLAINTEXT://127.0.0.1:0", "ANYWHERE://:0", "NAMED://127.0.0.1:0"),
        advertised_listeners=("PLAINTEXT://127.0.0.1:0", "NAMED://outside:99"),
        controller_listener_names=("ANYWHERE", "NAMED"),
    ) as node:
        told = {entry.name: (entry.host, entry.port) for entry in node.node.config.controller_addresses}
        assert told == {"ANYWHERE": (told_host(""), node.ports["ANYWHERE"]), "NAMED": ("outside", 99)}
        assert [entry.name for entry in node.node.config.advertised_addresses] == ["PLAINTEXT"]
    assert told_host("::") == told_host("0.0.0.0") == told_host("") not in ("", "::", "0.0.0.0")


def test_answers_of_other_nodes_are_not_bounded_like_requests_of_clients() -> None:
    """A follower that was away for long would be sent more than it takes, and never come back."""
    small = NodeConfig(node_id=1, log_dirs=("d",), socket_request_max_bytes=100_000)
    assert _peer_settings(small).max_answer_bytes > small.replica_fetch_response_max_bytes + 100_000_000
    large = small.replace(socket_request_max_bytes=500_000_000)
    assert _peer_settings(large).max_answer_bytes >= 500_000_000 + large.replica_fetch_response_max_bytes


def test_a_broker_does_not_close_the_connection_between_two_heartbeats_for_silence() -> None:
    """The controller would fence it: a connection that a broker ends means that the broker has ended."""
    impatient = NodeConfig(node_id=1, log_dirs=("d",), connections_max_idle_ms=500, broker_heartbeat_interval_ms=2_000)
    assert _peer_settings(impatient).max_idle_ms > 2_000
    assert _peer_settings(impatient.replace(connections_max_idle_ms=-1)).max_idle_ms == -1
    assert _peer_settings(impatient.replace(connections_max_idle_ms=600_000)).max_idle_ms == 600_000


def test_a_second_signal_ends_it_on_the_spot(tmp_path: Path) -> None:
    with process(tmp_path, "stubborn") as (child, port):
        child.send_signal(signal.SIGTERM)
        with Client(port) as client:
            assert client.ask("still here") == "still here"
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 128 + signal.SIGTERM
        assert "killed" in errors


def test_a_directory_in_use_is_refused_and_untouched(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        before = sorted(os.listdir(tmp_path / "data"))
        with pytest.raises(DirectoryError, match="in use"):
            Running(tmp_path / "data", lambda node, event: []).start()
        assert sorted(os.listdir(tmp_path / "data")) == before
        with Client(node.port) as client:
            assert client.ask() == "test"


def test_a_node_that_refuses_its_directory_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Running(tmp_path / "data", lambda node, event: [])

    def refuse(*arguments: object) -> object:
        raise DirectoryError("belongs to node 5")

    monkeypatch.setattr(node, "_make", refuse)
    with pytest.raises(DirectoryError, match="belongs to node 5"):
        node.start()
    assert os.listdir(tmp_path / "data") == []


def test_directories_are_free_again_after_a_stop(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        node.stop()
        storage = DirectoryStorage(str(tmp_path / "data"))
        storage.lock()
        storage.close()


def test_no_thread_or_descriptor_stays_behind(tmp_path: Path) -> None:
    import gc
    import threading

    with running(tmp_path) as node:
        with Client(node.port) as client:
            client.ask()
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    with running(tmp_path) as node:
        with Client(node.port) as client:
            client.ask()
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before
    assert not [thread for thread in threading.enumerate() if thread.name == "node"]
