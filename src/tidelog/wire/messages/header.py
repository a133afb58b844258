"""RequestHeader and ResponseHeader.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class RequestHeader(Message):
    """Kafka's RequestHeader, versions 1-2."""

    __slots__ = ("client_id", "correlation_id", "request_api_key", "request_api_version")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("request_api_key", "int16", "0+", "", -1, "", 0, None),
        ("request_api_version", "int16", "0+", "", -1, "", 0, None),
        ("correlation_id", "int32", "0+", "", -1, "", 0, None),
        ("client_id", "string", "1+", "1+", -1, "", "", ""),
    )

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


class ResponseHeader(Message):
    """Kafka's ResponseHeader, versions 0-1."""

    __slots__ = ("correlation_id",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_VERSIONS: ClassVar[str] = "1+"
    FIELDS: ClassVar[tuple[Field, ...]] = (("correlation_id", "int32", "0+", "", -1, "", 0, None),)

    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
