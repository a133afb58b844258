"""Requests and responses as they travel: a length, a header, a body.

What comes in is a frame without its four bytes of length, which whoever reads the socket has taken off; what goes out
has them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from tidelog.errors import DecodeError, ErrorCode, TidelogError
from tidelog.storage import Slice
from tidelog.wire.apis import (
    ApiKey,
    api_name,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from tidelog.wire.codec import decoder_of, encoder_of, holds_records, join_chunks
from tidelog.wire.decoder import Decoder
from tidelog.wire.encoder import Encoder
from tidelog.wire.varints import Buffer, decode_unsigned

_request_head = struct.Struct(">hhih")
"""Key, version, correlation id and the length of the client id, which keeps its old form in flexible headers too."""
_pack_request_head = struct.Struct(">ihhih").pack
_pack_response_head = struct.Struct(">ii").pack
_pack_flexible_response_head = struct.Struct(">iix").pack
_correlation_id = struct.Struct(">i")
_error_code = struct.Struct(">h")

_request_decoders: dict[tuple[int, int], tuple[Decoder, bool]] = {}
_request_encoders: dict[tuple[int, int], tuple[Encoder, bool]] = {}
_response_decoders: dict[tuple[int, int], tuple[Decoder, bool]] = {}
_response_encoders: dict[tuple[int, int], tuple[Encoder, Callable[[int, int], bytes], int, bool]] = {}


class UnsupportedVersion(TidelogError):
    """A request of an API or version that is not served. ApiVersions is answered all the same, as version 0."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"{api_name(api_key)} version {api_version} is not supported")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class RequestFrame:
    """A request with its header. Records in the body are views of the frame."""

    __slots__ = ("api_key", "api_version", "body", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body: Any) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body

    def __repr__(self) -> str:
        return f"RequestFrame({self.correlation_id}, {self.client_id!r}, v{self.api_version} {self.body!r})"


def decode_request(frame: Buffer, supported: Mapping[int, tuple[int, int]]) -> RequestFrame:
    """A request of one of the supported (first, last) versions. As in Kafka, bytes behind the body are ignored."""
    try:
        api_key, api_version, correlation_id, length = _request_head.unpack_from(frame)
    except struct.error:
        raise DecodeError(f"a request of {len(frame)} bytes has no header") from None
    versions = supported.get(api_key)
    if versions is None or not versions[0] <= api_version <= versions[1]:
        raise UnsupportedVersion(api_key, api_version, correlation_id)
    try:
        decoder, flexible = _request_decoders[api_key, api_version]
    except KeyError:
        decoder = decoder_of(request_class(api_key), api_version)
        flexible = request_header_version(api_key, api_version) == 2
        _request_decoders[api_key, api_version] = decoder, flexible
    offset = 10
    client_id = None
    if length >= 0:
        offset += length
        if offset > len(frame):
            raise DecodeError(f"a client id of {length} bytes in a request of {len(frame)}")
        try:
            client_id = str(frame[10:offset], "utf-8")
        except UnicodeDecodeError:
            raise DecodeError("a client id that is not UTF-8") from None
    elif length != -1:
        raise DecodeError(f"a client id of {length} bytes")
    if flexible:
        offset = _skip_tags(frame, offset)
    body, _ = decoder(frame, offset)
    return RequestFrame(api_key, api_version, correlation_id, client_id, body)


def encode_response(api_key: int, api_version: int, correlation_id: int, body: Any) -> list[bytes | Slice]:
    """A response with its length and header; slices of files stay slices."""
    try:
        encoder, head, head_size, may_hold_slices = _response_encoders[api_key, api_version]
    except KeyError:
        cls = response_class(api_key)
        encoder = encoder_of(cls, api_version)
        flexible = response_header_version(api_key, api_version) == 1
        head, head_size = (_pack_flexible_response_head, 5) if flexible else (_pack_response_head, 4)
        may_hold_slices = holds_records(cls)
        _response_encoders[api_key, api_version] = encoder, head, head_size, may_hold_slices
    chunks = encoder(body)
    if not may_hold_slices:
        data = b"".join(chunks)
        return [head(len(data) + head_size, correlation_id) + data]
    chunks.insert(0, head(sum(map(len, chunks)) + head_size, correlation_id))
    return join_chunks(chunks)


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, body: Any
) -> list[bytes | Slice]:
    """A request with its length and header."""
    try:
        encoder, flexible = _request_encoders[api_key, api_version]
    except KeyError:
        encoder = encoder_of(request_class(api_key), api_version)
        flexible = request_header_version(api_key, api_version) == 2
        _request_encoders[api_key, api_version] = encoder, flexible
    chunks = encoder(body)
    client = b"" if client_id is None else client_id.encode()
    size = 10 + len(client) + flexible + sum(map(len, chunks))
    length = -1 if client_id is None else len(client)
    head = _pack_request_head(size, api_key, api_version, correlation_id, length)
    chunks.insert(0, head + client + b"\0" if flexible else head + client)
    return join_chunks(chunks)


def decode_response(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Any]:
    """(correlation id, body). An ApiVersions answer that refuses the version is read as version 0 (KIP-511)."""
    try:
        (correlation_id,) = _correlation_id.unpack_from(frame)
        if api_key == ApiKey.API_VERSIONS and _error_code.unpack_from(frame, 4)[0] == ErrorCode.UNSUPPORTED_VERSION:
            api_version = 0
    except struct.error:
        raise DecodeError(f"a response of {len(frame)} bytes has no header") from None
    try:
        decoder, flexible = _response_decoders[api_key, api_version]
    except KeyError:
        decoder = decoder_of(response_class(api_key), api_version)
        flexible = response_header_version(api_key, api_version) == 1
        _response_decoders[api_key, api_version] = decoder, flexible
    offset = _skip_tags(frame, 4) if flexible else 4
    body, end = decoder(frame, offset)
    if end != len(frame):
        raise DecodeError(f"{api_name(api_key)} response v{api_version}: {len(frame) - end} bytes too many")
    return correlation_id, body


def _skip_tags(frame: Buffer, offset: int) -> int:
    """The offset behind a header's tagged fields; none is known today."""
    try:
        count = frame[offset]
        if not count:
            return offset + 1
        count, offset = decode_unsigned(frame, offset)
        for _ in range(count):
            _, offset = decode_unsigned(frame, offset)
            size, offset = decode_unsigned(frame, offset)
            offset += size
    except IndexError:
        raise DecodeError("a header cut short") from None
    return offset
