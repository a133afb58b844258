"""Envelope, version 0 (KIP-590): a request that a broker passes on for a client, with who that client is.

Our own brokers send such requests to the controller as they are, since nothing here depends on who asks; brokers of
Apache Kafka put them into an envelope. What is in it must be one of those that may be forwarded. As in Kafka, an inner
request that cannot be read is UNSUPPORTED_VERSION, so that it is not taken for a fault of the envelope, and an answer
of NOT_CONTROLLER is the envelope's own, so that the broker looks for the controller itself.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.events import LOCAL_CONNECTION, Request
from tidelog.node.apis import controller, forwarded
from tidelog.storage import Slice
from tidelog.wire.api_table import ApiKey
from tidelog.wire.apis import api_name
from tidelog.wire.frames import RequestFrame, UnsupportedVersion, decode_request, encode_response
from tidelog.wire.message import Message
from tidelog.wire.messages.envelope import EnvelopeResponse
from tidelog.wire.varints import decode_unsigned

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.ENVELOPE
VERSIONS = (0, 0)
FORWARDED = {
    **forwarded.VERSIONS,
    ApiKey.ALLOCATE_PRODUCER_IDS: controller.VERSIONS[ApiKey.ALLOCATE_PRODUCER_IDS],
}
_head = struct.Struct(">hhi")
_LENGTH_BYTES = 4
_ADDRESS_BYTES = (4, 16)


def handle(node: Node, request: Request) -> EnvelopeResponse | None:
    """Open it, let the controller answer what is in it, and put the answer into an envelope."""
    body = request.body
    try:
        check_principal(body.request_principal)
        if len(body.client_host_address) not in _ADDRESS_BYTES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a client address of 4 or 16 bytes is wanted")
        inner = _open(body.request_data)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)

    def answered(response: Any, error: str | None) -> None:
        if error is not None or _says_not_controller(response):
            wrapped = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        else:
            parts = encode_response(inner.api_key, inner.api_version, inner.correlation_id, response)
            data = b"".join(part.read() if isinstance(part, Slice) else part for part in parts)
            wrapped = EnvelopeResponse(response_data=data[_LENGTH_BYTES:])
        node.outbox.reply(request.connection_id, request.slot, wrapped)

    number = node.outbox.expect(answered)
    local = Request(LOCAL_CONNECTION, number, inner.api_key, inner.api_version, inner.client_id, inner.body)
    if not node.cluster.handle_locally(local):
        node.outbox.resume(number, None, "another node is the active controller")
    return None


def _open(data: bytes) -> RequestFrame:
    """The request inside; the error is what the envelope is answered with."""
    try:
        api_key, _, _ = _head.unpack_from(data)
    except struct.error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "an inner request without a header") from None
    if api_key not in FORWARDED:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{api_name(api_key)} may not be forwarded")
    try:
        return decode_request(data, {int(key): versions for key, versions in FORWARDED.items()})
    except (DecodeError, UnsupportedVersion) as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None


def check_principal(data: bytes | None) -> None:
    """Raise unless it is Kafka's form of a principal: a version, then type and name, and whether by a token."""
    try:
        if data is None or int.from_bytes(data[:2], "big") != 0 or len(data) < 2:
            raise ValueError
        offset = 2
        for _ in range(2):
            length, offset = decode_unsigned(data, offset)
            text = bytes(data[offset : offset + length - 1])
            if length < 1 or len(text) < length - 1:
                raise ValueError
            text.decode()
            offset += length - 1
        if offset + 2 > len(data):
            raise ValueError
    except (ValueError, IndexError, DecodeError):
        message = "a principal that cannot be read"
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, message) from None


def _says_not_controller(message: Any) -> bool:
    """Whether any part of an answer has that code."""
    if isinstance(message, list):
        return any(_says_not_controller(one) for one in message)
    if not isinstance(message, Message):
        return False
    if getattr(message, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        return True
    return any(_says_not_controller(getattr(message, field[0])) for field in message.FIELDS)
