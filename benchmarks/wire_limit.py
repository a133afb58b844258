"""What the wire itself allows: so many bytes in, three files written, two copies out, without any protocol.

python -m benchmarks.wire_limit --megabytes 1000 --directory /tmp

Four processes on plain blocking sockets: a sender; a leader that receives, writes and passes on with sendfile; two
followers that receive and write. It is what a produce with three replicas must move at least, so no broker on this
machine can be faster. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from multiprocessing import Process
from pathlib import Path

from benchmarks.apart import measure_apart, options

CHUNK_BYTES = 1 << 20


def measure(megabytes: int, directory: Path) -> float:
    """Megabytes a second, in a process of its own."""
    words = options(megabytes=megabytes, directory=directory)
    return float(measure_apart("benchmarks.wire_limit", *words, timeout_s=600)["mb_s"])


def _listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.listen()
    return listener


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _send(port: int, size: int) -> None:
    with _connect(port) as connection:
        chunk = memoryview(os.urandom(CHUNK_BYTES))
        left = size
        while left:
            connection.sendall(chunk[: min(left, CHUNK_BYTES)])
            left -= min(left, CHUNK_BYTES)
        connection.recv(1)


def _follow(listener: socket.socket, size: int, directory: str) -> None:
    connection, _ = listener.accept()
    with connection, tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        buffer = memoryview(bytearray(CHUNK_BYTES))
        left = size
        while left:
            count = connection.recv_into(buffer)
            os.write(file.fileno(), buffer[:count])
            left -= count
        connection.send(b"!")


def _lead(listener: socket.socket, followers: list[int], size: int, directory: str) -> None:
    connection, _ = listener.accept()
    copies = [_connect(port) for port in followers]
    with connection, tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        buffer = memoryview(bytearray(CHUNK_BYTES))
        written = 0
        while written < size:
            count = connection.recv_into(buffer)
            os.write(file.fileno(), buffer[:count])
            for copy in copies:
                at, end = written, written + count
                while at < end:
                    at += os.sendfile(copy.fileno(), file.fileno(), at, end - at)
            written += count
        for copy in copies:
            copy.recv(1)
            copy.close()
        connection.send(b"!")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="What plain sockets and files allow on this machine.")
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--directory", default=tempfile.gettempdir())
    arguments = parser.parse_args()
    size = arguments.megabytes * 1_000_000
    leader, *followers = [_listen() for _ in range(3)]
    ports = [each.getsockname()[1] for each in followers]
    processes = [Process(target=_follow, args=(each, size, arguments.directory)) for each in followers]
    processes.append(Process(target=_lead, args=(leader, ports, size, arguments.directory)))
    sender = Process(target=_send, args=(leader.getsockname()[1], size))
    for process in processes:
        process.start()
    started_s = time.perf_counter()
    sender.start()
    sender.join()
    seconds = time.perf_counter() - started_s
    for process in processes:
        process.join()
        if process.exitcode:
            sys.exit("a copy failed")
    print(json.dumps({"mb_s": size / 1_000_000 / seconds, "seconds": seconds}))


if __name__ == "__main__":
    main()
