"""A broker of Apache Kafka passes its clients' requests on in envelopes (KIP-590): their bytes, written out by hand."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from tests.cluster.support import cluster_of
from tidelog.errors import ErrorCode
from tidelog.verify.cluster import LocalCluster

PRINCIPAL = b"\0\0\x05User\x0aANONYMOUS\0\0"
"""Version 0; type, name, not by a token, no tagged fields."""
ADDRESS = b"\x7f\0\0\1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cluster_of(3, controllers=2) as started:
        yield started


def compact(data: bytes) -> bytes:
    assert len(data) < 127
    return bytes([len(data) + 1]) + data


def create_topic(name: bytes, version: int = 7) -> bytes:
    """CreateTopics, correlation id 77, client id `far`: one topic, one partition, one replica, no configs."""
    header = struct.pack(">hhi", 19, version, 77) + b"\0\3far" + b"\0"
    topic = compact(name) + struct.pack(">ih", 1, 1) + b"\1" + b"\1" + b"\0"
    return header + b"\2" + topic + struct.pack(">i", 10_000) + b"\0" + b"\0"


def send(port: int, inner: bytes, principal: bytes = PRINCIPAL, address: bytes = ADDRESS) -> tuple[bytes | None, int]:
    """What is in the envelope that comes back, and its error."""
    frame = struct.pack(">hhi", 58, 0, 5) + b"\0\2b1" + b"\0"
    frame += compact(inner) + compact(principal) + compact(address) + b"\0"
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        stream = connection.makefile("rb")
        (length,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(length)
    assert answer[:5] == struct.pack(">i", 5) + b"\0"
    size, begin = answer[5], 6
    if size > 127:
        size, begin = size - 128 + (answer[6] << 7), 7
    data = answer[begin : begin + size - 1] if size else None
    rest = answer[begin + max(size - 1, 0) :]
    assert rest[2:] == b"\0"
    return data, struct.unpack(">h", rest[:2])[0]


def active(cluster: LocalCluster) -> int:
    return next(one.controller_port or 0 for one in cluster.plan.controllers if one.node_id == cluster.controller())


def test_the_controller_answers_what_is_inside(cluster: LocalCluster) -> None:
    data, error = send(active(cluster), create_topic(b"wrapped"))
    assert (error, data is not None) == (0, True)
    assert data is not None
    # Its own header: correlation id and tagged fields; then the throttle time, and one topic with its name.
    assert data[:10] == struct.pack(">i", 77) + b"\0" + struct.pack(">i", 0) + b"\2"
    topic = data[10:]
    assert topic[:8] == b"\x08wrapped"
    assert topic[24:26] == b"\0\0", "no error, behind the topic id"
    again, error = send(active(cluster), create_topic(b"wrapped"))
    assert again is not None
    assert error == 0, "what is wrong with the request is in its own answer"
    assert again[10:][24:26] == struct.pack(">h", ErrorCode.TOPIC_ALREADY_EXISTS)


def test_what_is_wrong_with_the_envelope_is_its_own_error(cluster: LocalCluster) -> None:
    port = active(cluster)
    metadata = struct.pack(">hhi", 3, 12, 77) + b"\0\3far" + b"\0" + b"\0\1\0\0"
    assert send(port, metadata) == (None, ErrorCode.INVALID_REQUEST)
    assert send(port, create_topic(b"x"), address=b"\1\2") == (None, ErrorCode.INVALID_REQUEST)
    assert send(port, create_topic(b"x"), principal=b"\0\7zz") == (None, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    assert send(port, create_topic(b"x"), principal=b"\0\0\x7fUser") == (
        None,
        ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
    )
    assert send(port, create_topic(b"x", version=99)) == (None, ErrorCode.UNSUPPORTED_VERSION)
    assert send(port, create_topic(b"x")[:-6]) == (None, ErrorCode.UNSUPPORTED_VERSION)
    assert send(port, b"\0\x13") == (None, ErrorCode.UNSUPPORTED_VERSION)


def test_a_controller_that_is_not_active_says_so(cluster: LocalCluster) -> None:
    other = next(one for one in cluster.plan.controllers if one.node_id != cluster.controller())
    assert send(other.controller_port or 0, create_topic(b"x")) == (None, ErrorCode.NOT_CONTROLLER)
