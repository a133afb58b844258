"""Ask a broker, in a few bytes of Kafka's protocol, whether it is there and ready; no client library is involved."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

METADATA, METADATA_VERSION = 3, 1
API_VERSIONS = 18


def request_frame(api_key: int, api_version: int, correlation_id: int, body: bytes, client_id: str = "probe") -> bytes:
    """A request with header version 1 (the ones before flexible versions), with its length."""
    name = client_id.encode()
    header = struct.pack(">hhih", api_key, api_version, correlation_id, len(name)) + name
    return struct.pack(">i", len(header) + len(body)) + header + body


def read_frame(connection: socket.socket) -> bytes:
    """One answer without its length; EOFError when the other side closed."""
    (length,) = struct.unpack(">i", read_exactly(connection, 4))
    return read_exactly(connection, length)


def read_exactly(connection: socket.socket, length: int) -> bytes:
    """Exactly `length` bytes; EOFError when the other side closed before."""
    received = bytearray()
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise EOFError("the broker closed the connection")
        received += piece
    return bytes(received)


def brokers_and_controller(port: int, timeout_s: float = 2.0) -> tuple[list[int], int]:
    """Ids of the brokers a Metadata answer names, and the controller's id (-1 when there is none)."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        no_topics = struct.pack(">i", 0)
        connection.sendall(request_frame(METADATA, METADATA_VERSION, 7, no_topics))
        answer = read_frame(connection)
    (correlation_id, broker_count) = struct.unpack_from(">ii", answer, 0)
    assert correlation_id == 7
    position = 8
    brokers = []
    for _ in range(broker_count):
        (node_id, host_length) = struct.unpack_from(">ih", answer, position)
        brokers.append(node_id)
        position += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, position)
        position += 2 + max(rack_length, 0)
    (controller_id,) = struct.unpack_from(">i", answer, position)
    return brokers, controller_id


def served_apis(port: int, timeout_s: float = 5.0) -> dict[int, tuple[int, int]]:
    """What the broker says it serves: API key to first and last version."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(request_frame(API_VERSIONS, 0, 8, b""))
        answer = read_frame(connection)
    (error_code, count) = struct.unpack_from(">hi", answer, 4)
    assert error_code == 0
    rows = struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])
    return {api_key: (first, last) for api_key, first, last in rows}


def is_ready(port: int) -> bool:
    """Whether the broker on this port serves requests and a topic could be made."""
    try:
        brokers, controller_id = brokers_and_controller(port)
    except (OSError, EOFError):
        return False
    return bool(brokers) and controller_id >= 0


def wait_ready(port: int, timeout_s: float, still_alive: Callable[[], None]) -> None:
    """Return when the broker is ready; `still_alive` raises when waiting has become pointless."""
    deadline = time.monotonic() + timeout_s
    while not is_ready(port):
        still_alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no ready broker on port {port} within {timeout_s} s")
        time.sleep(0.02)
