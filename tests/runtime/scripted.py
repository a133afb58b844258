"""A node with the same door as the real one that does what a test says, the runtime around it, and a bare client."""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tidelog.config import NodeConfig
from tidelog.effects import Effect, Halt, Reply
from tidelog.events import Event, Request, StopRequested, Tick
from tidelog.runtime.host import Host
from tidelog.runtime.logging import EventLog
from tidelog.runtime.process import run_node
from tidelog.storage import Storage
from tidelog.wire.frames import decode_response, encode_request
from tidelog.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.wire.messages.metadata import MetadataRequest, MetadataResponse

PATIENCE_SECONDS = 60.0
"""How long what must happen may take on a machine that is busy with something else, too."""
VERSIONS = {0: (3, 9), 1: (4, 12), 3: (0, 12), 18: (0, 4)}
Script = Callable[["ScriptedNode", Event], list[Effect]]


def answer_metadata(node: ScriptedNode, event: Event) -> list[Effect]:
    """Answer every request at once, naming the client in the answer."""
    if isinstance(event, Request):
        return [Reply(event.connection_id, event.slot, MetadataResponse(cluster_id=event.client_id))]
    return []


class ScriptedNode:
    """Records every event, does what its script says, and stops when asked."""

    def __init__(self, config: NodeConfig, storages: Sequence[Storage], script: Script) -> None:
        self.config = config
        self.storages = storages
        self.script = script
        self.events: queue.Queue[Event] = queue.Queue()
        self.requests = 0
        self.wake_at_ms: int | None = None
        self.api_versions: Mapping[int, tuple[int, int]] = VERSIONS
        self.stop_exit_code = 0
        self.serves_clients = True

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        if isinstance(event, Tick):
            self.wake_at_ms = None
        if isinstance(event, StopRequested):
            return [*self.script(self, event), Halt(self.stop_exit_code, "stopped")]
        if isinstance(event, Request):
            self.requests += 1
        effects = self.script(self, event)
        self.events.put(event)
        return effects

    def wait_for(self, kind: type[Any]) -> Any:
        """The next event of a kind; others are dropped."""
        while True:
            event = self.events.get(timeout=PATIENCE_SECONDS)
            if isinstance(event, kind):
                return event


class Running:
    """A scripted node with the real runtime around it, on a thread."""

    def __init__(self, directory: Path, script: Script, **settings: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_path = directory.parent / f"{directory.name}.log"
        settings.setdefault("listeners", ("PLAINTEXT://127.0.0.1:0",))
        self.config = NodeConfig(node_id=1, log_dirs=(str(directory),), **settings)
        self.node: ScriptedNode
        self.host: Host
        self.ports: dict[str, int] = {}
        self.exit_code: int | None = None
        self.error: BaseException | None = None
        self._script = script
        self._started = threading.Event()
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="node")

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error

    @property
    def port(self) -> int:
        return self.ports["PLAINTEXT"]

    def call(self, action: Callable[[], Any]) -> Any:
        """Do something on the loop's thread and wait for it."""
        results: queue.Queue[Any] = queue.Queue()
        self._calls.put(lambda: results.put(action()))
        self.host.loop.wake()
        return results.get(timeout=PATIENCE_SECONDS)

    def deliver(self, event: Event) -> None:
        """Let an event happen to the node."""
        self.call(lambda: self.host.deliver(event))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Look on the loop's thread until it holds."""
        done = threading.Event()
        for _ in range(int(PATIENCE_SECONDS * 200)):
            if self.call(condition):
                return
            done.wait(0.005)
        raise AssertionError("it did not come to be")

    def stop(self) -> int:
        """Stop cleanly and return the exit code."""
        if self._thread.is_alive():
            self._calls.put(self.host.request_stop)
            self.host.loop.wake()
        return self.join()

    def join(self) -> int:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        assert self.exit_code is not None
        return self.exit_code

    def log_lines(self, kind: str = "") -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log_path.read_text().splitlines()]
        return [line for line in lines if not kind or line["event"] == kind]

    def _run(self) -> None:
        log = EventLog.to_file(str(self.log_path), json=True)
        try:
            self.exit_code = run_node(
                self.config, log=log, node_factory=self._make, started=self._on_started, handle_signals=False
            )
        except BaseException as error:
            self.error = error
        finally:
            os.close(log._fd)
            self._started.set()

    def _make(self, config: NodeConfig, storages: Sequence[Storage], seed: int, now_ms: int) -> ScriptedNode:
        self.node = ScriptedNode(config, storages, self._script)
        return self.node

    def _on_started(self, host: Host, config: NodeConfig) -> None:
        self.host = host
        self.ports = {entry.name: entry.port for entry in config.listener_addresses}
        host.loop.on_wake.append(self._run_calls)
        self._started.set()

    def _run_calls(self) -> None:
        while not self._calls.empty():
            self._calls.get()()


@contextmanager
def running(directory: Path, script: Script = answer_metadata, **settings: Any) -> Iterator[Running]:
    """A scripted node for the length of a test."""
    node = Running(directory / "data", script, **settings)
    node.start()
    try:
        yield node
    finally:
        node.stop()


class Client:
    """A bare connection: frames out, frames in."""

    def __init__(self, port: int, receive_buffer_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect(("127.0.0.1", port))
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def request_bytes(self, name: str = "test", api_key: int = 3, version: int = 9, body: Any = None) -> bytes:
        """A request with its length, with correlation ids 1, 2, 3…"""
        self._next += 1
        parts = encode_request(api_key, version, self._next, name, body or MetadataRequest())
        return b"".join(part if isinstance(part, bytes) else part.read() for part in parts)

    def send(self, *arguments: Any, **options: Any) -> None:
        self.socket.sendall(self.request_bytes(*arguments, **options))

    def receive(self, api_key: int = 3, version: int = 9) -> tuple[int, Any]:
        """Correlation id and body of the next answer."""
        return decode_response(api_key, version, self.receive_frame())

    def receive_frame(self) -> memoryview:
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return memoryview(self.receive_exactly(size))

    def receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(min(1 << 20, size - len(data)))
            if not part:
                raise EOFError(f"closed after {len(data)} of {size} bytes")
            data += part
        return bytes(data)

    def ask(self, name: str = "test") -> str:
        """One request answered by `answer_metadata`."""
        self.send(name)
        correlation_id, body = self.receive()
        assert correlation_id == self._next
        answer: str = body.cluster_id
        return answer

    def is_closed(self) -> bool:
        """Wait for the other side to say something; True when it is a goodbye."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def fetch_answer(records: Any) -> FetchResponse:
    """An answer to Fetch v12 that carries these records."""
    partition = PartitionData(partition_index=0, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
