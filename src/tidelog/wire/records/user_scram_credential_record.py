"""UserScramCredentialRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import Field, Message


class UserScramCredentialRecord(Message):
    """Kafka's UserScramCredentialRecord, versions 0."""

    __slots__ = ("iterations", "mechanism", "name", "salt", "server_key", "stored_key")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 11
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("mechanism", "int8", "0+", "", -1, "", 0, None),
        ("salt", "bytes", "0+", "", -1, "", b"", None),
        ("stored_key", "bytes", "0+", "", -1, "", b"", None),
        ("server_key", "bytes", "0+", "", -1, "", b"", None),
        ("iterations", "int32", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
