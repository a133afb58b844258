"""EnvelopeRequest and EnvelopeResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class EnvelopeRequest(Message):
    """Kafka's EnvelopeRequest, versions 0."""

    __slots__ = ("client_host_address", "request_data", "request_principal")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 58
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("request_data", "bytes", "0+", "", -1, "", b"", None),
        ("request_principal", "bytes", "0+", "0+", -1, "", b"", None),
        ("client_host_address", "bytes", "0+", "", -1, "", b"", None),
    )

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address


class EnvelopeResponse(Message):
    """Kafka's EnvelopeResponse, versions 0."""

    __slots__ = ("error_code", "response_data")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 58
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("response_data", "bytes", "0+", "0+", -1, "", None, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
