"""Frames: headers of both kinds, refusals that can still be answered, and nothing but DecodeError for garbage."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.values import draw_message
from tidelog.errors import DecodeError
from tidelog.wire.api_table import API_TABLE
from tidelog.wire.apis import (
    ApiKey,
    api_listeners,
    api_name,
    api_versions,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from tidelog.wire.frames import (
    RequestFrame,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tidelog.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tidelog.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SUPPORTED = {int(key): api_versions(key) for key in ApiKey}
ALL = [(key, version) for key, (first, last) in SUPPORTED.items() for version in range(first, last + 1)]


def frame_of(parts: Sequence[Any]) -> bytes:
    """A frame without its length, which must be right."""
    data = b"".join(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


def request_frame(key: int, version: int, seed: int, client_id: str | None = "client") -> bytes:
    body = draw_message(request_class(key), version, Random(seed))
    return frame_of(encode_request(key, version, 77, client_id, body))


@pytest.mark.parametrize("client_id", ["", "rdkafka", None, "ü" * 200])
def test_every_request_finds_its_class(client_id: str | None) -> None:
    for key, version in ALL:
        decoded = decode_request(memoryview(request_frame(key, version, 3, client_id)), SUPPORTED)
        assert (decoded.api_key, decoded.api_version, decoded.correlation_id) == (key, version, 77)
        assert decoded.client_id == client_id
        assert isinstance(decoded.body, request_class(key))


def test_every_response_finds_its_class() -> None:
    for key, version in ALL:
        body = draw_message(response_class(key), version, Random(4))
        body_error = getattr(body, "error_code", 0)
        if key == ApiKey.API_VERSIONS and body_error == 35:
            body.error_code = 0
        correlation_id, decoded = decode_response(key, version, frame_of(encode_response(key, version, 5, body)))
        assert correlation_id == 5
        assert isinstance(decoded, response_class(key))


def test_header_versions() -> None:
    assert (request_header_version(ApiKey.PRODUCE, 8), request_header_version(ApiKey.PRODUCE, 9)) == (1, 2)
    assert (response_header_version(ApiKey.PRODUCE, 8), response_header_version(ApiKey.PRODUCE, 9)) == (0, 1)
    assert request_header_version(ApiKey.API_VERSIONS, 3) == 2
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5


def test_exact_bytes_of_a_heartbeat() -> None:
    body = HeartbeatRequest(group_id="g", generation_id=2, member_id="m")
    old = "000c0000" + "00000009" + "0003616263" + "000167" + "00000002" + "00016d"
    assert frame_of(encode_request(12, 0, 9, "abc", body)).hex() == old
    new = "000c0004" + "00000009" + "0003616263" + "00" + "0267" + "00000002" + "026d" + "00" + "00"
    assert frame_of(encode_request(12, 4, 9, "abc", body)).hex() == new
    answer = HeartbeatResponse(error_code=27)
    assert frame_of(encode_response(12, 4, 9, answer)).hex() == "00000009" + "00" + "00000000" + "001b" + "00"
    assert frame_of(encode_response(12, 0, 9, answer)).hex() == "00000009" + "001b"


@pytest.mark.parametrize(("key", "version"), [(0, 99), (3, -1), (18, 77), (999, 0), (-5, 1)])
def test_an_unserved_api_or_version_keeps_what_an_answer_needs(key: int, version: int) -> None:
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x2a\xff\xff"
    with pytest.raises(UnsupportedVersion) as caught:
        decode_request(head + b"whatever", SUPPORTED)
    assert (caught.value.api_key, caught.value.api_version, caught.value.correlation_id) == (key, version, 42)
    assert str(version) in str(caught.value)


def test_only_what_the_node_serves_is_decoded() -> None:
    frame = request_frame(ApiKey.METADATA, 12, 1)
    assert isinstance(decode_request(frame, {3: (0, 12)}), RequestFrame)
    for supported in ({3: (0, 11)}, {1: (0, 12)}):
        with pytest.raises(UnsupportedVersion):
            decode_request(frame, supported)


def test_an_old_brokers_refusal_of_api_versions_can_be_read() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=3)])
    frame = frame_of(encode_response(ApiKey.API_VERSIONS, 0, 1, refusal))
    assert decode_response(ApiKey.API_VERSIONS, 4, frame) == (1, refusal)


def test_tagged_fields_in_headers_are_skipped() -> None:
    body = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    frame = frame_of(encode_request(18, 3, 1, "c", body))
    tagged = frame[:11] + b"\x01\x05\x02zz" + frame[12:]
    assert decode_request(tagged, SUPPORTED).body == body


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x03",
        b"\0\x03\0\x0c\0\0\0\x01",
        b"\0\x03\0\x0c\0\0\0\x01\xff\xfe",
        b"\0\x03\0\x0c\0\0\0\x01\x7f\xffabc",
        b"\0\x03\0\x0c\0\0\0\x01\0\x02\xff\xfe\0",
        b"\0\x03\0\x0c\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\x03\0\x0c\0\0\0\x01\xff\xff\x00\xff\xff\xff\xff\x0f",
    ],
)
def test_a_broken_frame_is_a_decode_error(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_request(frame, SUPPORTED)


def mutate(frame: bytes, random: Random) -> bytes:
    data = bytearray(frame)
    for _ in range(random.choice([1, 1, 2, 5])):
        position = random.randrange(8, max(9, len(data))) if len(data) > 9 else 0
        kind = random.randrange(5)
        if kind == 0 and data:
            data[position % len(data)] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
        elif kind == 1:
            del data[position:]
        elif kind == 2:
            data[position:position] = random.choice(
                [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10"]
            )
        elif kind == 3:
            data[position : position + 4] = random.choice(
                [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\xff\xff\xff"]
            )
        else:
            del data[position : position + random.randrange(1, 4)]
    return bytes(data)


def test_mutated_frames_end_in_a_decode_error_or_a_message() -> None:
    random = Random(99)
    frames = [(key, version, request_frame(key, version, key)) for key, version in ALL]
    answers = [
        (key, version, frame_of(encode_response(key, version, 1, draw_message(response_class(key), version, random))))
        for key, version in ALL
    ]
    refused = 0
    for _ in range(40):
        for _, _, frame in frames:
            try:
                decode_request(memoryview(mutate(frame, random)), SUPPORTED)
            except (DecodeError, UnsupportedVersion):
                refused += 1
        for key, version, frame in answers:
            try:
                decode_response(key, version, memoryview(mutate(frame, random)))
            except DecodeError:
                refused += 1
    assert refused > 10_000


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), st.binary(max_size=60))
def test_garbage_behind_a_header_is_refused_or_read(pair: tuple[int, int], garbage: bytes) -> None:
    key, version = pair
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\x01\xff\xff"
    with contextlib.suppress(DecodeError):
        assert isinstance(decode_request(head + garbage, SUPPORTED).body, request_class(key))


def test_a_small_frame_cannot_ask_for_much_memory() -> None:
    random = Random(5)
    frames = [request_frame(key, version, 1) for key, version in ALL]
    hostile = [mutate(mutate(frame, random), random) for frame in frames for _ in range(2)]
    for frame in frames:  # compile everything first
        decode_request(frame, SUPPORTED)
    tracemalloc.start()
    try:
        for frame in hostile:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with contextlib.suppress(DecodeError, UnsupportedVersion):
                decode_request(frame, SUPPORTED)
            assert tracemalloc.get_traced_memory()[1] - before < 100_000 + 200 * len(frame)
    finally:
        tracemalloc.stop()


def test_what_is_known_of_an_api() -> None:
    assert api_name(ApiKey.FETCH) == "Fetch"
    assert api_name(12345) == "api 12345"
    assert api_versions(ApiKey.PRODUCE) == (3, 13)
    assert api_versions(ApiKey.INIT_PRODUCER_ID) == (0, 5)  # version 6 is not stable in Kafka
    assert "controller" in api_listeners(ApiKey.VOTE)
    assert api_listeners(ApiKey.PRODUCE) == ("broker",)
    assert set(API_TABLE) == set(ApiKey)
