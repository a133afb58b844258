"""Answers made of slices of files: every byte arrives, large ones by sendfile, and a truncated one never does."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.scripted import Client, ScriptedNode, answer_metadata, fetch_answer, running
from tidelog.effects import Effect, Reply
from tidelog.events import ConnectionClosed, Event, Request
from tidelog.runtime import sending
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.sending import SMALL_SLICE_BYTES, Sender, SliceCut
from tidelog.sim.disk import SimulatedDisk
from tidelog.storage import Slice
from tidelog.wire.messages.fetch import FetchRequest

PATTERN = os.urandom(1 << 16)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sending side that does not block and takes little, and a receiving side."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiving = socket.socket()
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        receiving.settimeout(60)
        receiving.connect(server.getsockname())
        sending_side, _ = server.accept()
    sending_side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    sending_side.setblocking(False)
    yield sending_side, receiving
    sending_side.close()
    receiving.close()


def pump(sender: Sender, receiving: socket.socket, expected_bytes: int) -> bytes:
    """Send to the end while the other side reads."""
    received = bytearray()

    def read() -> None:
        while len(received) < expected_bytes:
            part = receiving.recv(1 << 16)
            if not part:
                return
            received.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    while not sender.send():
        assert reader.is_alive() or not sender.queued_bytes
    reader.join(60)
    return bytes(received)


@pytest.mark.parametrize("portable", [False, True], ids=["sendfile", "read"])
def test_mixed_parts_arrive_in_order(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if portable:
        monkeypatch.setattr(sending, "_sendfile", None)
    file = DirectoryStorage(str(tmp_path)).open("a.log", create=True)
    content = PATTERN * 20
    file.append(content)
    parts: list[bytes | Slice] = []
    expected = b""
    for number, size in enumerate([1, 100, SMALL_SLICE_BYTES, SMALL_SLICE_BYTES + 1, 500_000, 3, 0, 70_000, 20]):
        head = b"<head %d>" % number
        parts += [head, Slice(file, number * 1000, size)]
        expected += head + content[number * 1000 : number * 1000 + size]
    parts += [b"x" * 10] * 500
    expected += b"x" * 5000
    sender = Sender(pair[0])
    sender.add(parts)
    assert sender.queued_bytes == len(expected)
    assert pump(sender, pair[1], len(expected)) == expected
    assert sender.queued_bytes == 0


def test_one_part_alone_arrives_whole(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender = Sender(pair[0])
    sender.add([PATTERN * 20])
    assert pump(sender, pair[1], len(PATTERN) * 20) == PATTERN * 20
    assert sender.queued_bytes == 0


def test_a_slice_of_a_simulated_file_can_be_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    file = SimulatedDisk().open("a.log", create=True)
    file.append(PATTERN * 4)
    sender = Sender(pair[0])
    sender.add([Slice(file, 10, 200_000)])
    assert pump(sender, pair[1], 200_000) == (PATTERN * 4)[10:200_010]


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_a_slice_that_was_cut_is_not_sent(tmp_path: Path, pair: tuple[socket.socket, socket.socket], size: int) -> None:
    file = DirectoryStorage(str(tmp_path)).open("a.log", create=True)
    file.append(PATTERN * 20)
    sender = Sender(pair[0])
    sender.add([b"head", Slice(file, 0, size)])
    file.truncate(file.size - 1)
    with pytest.raises(SliceCut, match=r"a\.log"):
        sender.send()


def test_a_large_answer_comes_whole(tmp_path: Path) -> None:
    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.api_key == 1:
            file = node.storages[0].open("a.log", create=True)
            if not file.size:
                for _ in range(160):
                    file.append(PATTERN)
            answer = fetch_answer([Slice(file, 5, 10_000_000), Slice(file, 17, 1000), b"end"])
            return [Reply(event.connection_id, event.slot, answer)]
        return answer_metadata(node, event)

    with running(tmp_path, script) as node, Client(node.port) as client:
        client.send("consumer", 1, 12, FetchRequest())
        client.send("behind it")
        content = PATTERN * 160
        _, answer = client.receive(1, 12)
        records = answer.responses[0].partitions[0].records
        assert bytes(records) == content[5:10_000_005] + content[17:1017] + b"end"
        assert client.receive()[1].cluster_id == "behind it"


def test_a_truncated_log_ends_the_connection_in_the_middle_of_the_answer(tmp_path: Path) -> None:
    size = 40_000_000

    def script(node: ScriptedNode, event: Event) -> list[Effect]:
        if isinstance(event, Request) and event.api_key == 1:
            file = node.storages[0].open("a.log", create=True)
            file.append(bytes(size))
            return [Reply(event.connection_id, event.slot, fetch_answer([Slice(file, 0, size)]))]
        return answer_metadata(node, event)

    with running(tmp_path, script) as node:
        with Client(node.port, receive_buffer_bytes=4096) as client, Client(node.port) as healthy:
            client.send("consumer", 1, 12, FetchRequest())
            node.node.wait_for(Request)
            node.call(lambda: node.node.storages[0].open("a.log").truncate(100))
            with pytest.raises((EOFError, ConnectionResetError)):
                client.receive(1, 12)
            assert "a.log was truncated" in node.node.wait_for(ConnectionClosed).reason
            assert len(node.log_lines("connection-closed")) == 1
            assert healthy.ask("fine") == "fine"


def test_a_slice_in_a_queue_keeps_its_file_through_deletion(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket]
) -> None:
    storage = DirectoryStorage(str(tmp_path))
    file = storage.open("a.log", create=True)
    file.append(PATTERN * 20)
    sender = Sender(pair[0])
    sender.add([Slice(file, 0, 1_000_000)])
    assert not sender.send()
    file.close()
    del file
    storage.delete("a.log")
    assert pump(sender, pair[1], 1_000_000) == (PATTERN * 20)[:1_000_000]
