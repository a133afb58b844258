"""Kafka's UUIDs: sixteen raw bytes in the core, URL-safe base64 without padding in texts and files."""

from __future__ import annotations

import binascii

from tidelog.errors import DecodeError

ZERO_UUID = bytes(16)
"""Stands for "none"."""
ONE_UUID = bytes(15) + b"\x01"
"""Reserved by Kafka: the metadata topic's id, and as a directory id "unassigned and migrating"."""
LOST_DIRECTORY = bytes(15) + b"\x02"
"""Kafka's id of the directory of replicas that are gone (KIP-858)."""


def to_text(uuid: bytes) -> str:
    """The 22 characters people and `meta.properties` use."""
    return binascii.b2a_base64(uuid, newline=False)[:-2].translate(_TO_URL_SAFE).decode()


def from_text(text: str) -> bytes:
    """The sixteen bytes of a 22-character text; anything else is a DecodeError."""
    try:
        raw = text.encode("ascii")
        if len(raw) != 22 or b"+" in raw or b"/" in raw:
            raise ValueError
        uuid = binascii.a2b_base64(raw.translate(_FROM_URL_SAFE) + b"==", strict_mode=True)
    except ValueError:
        raise DecodeError(f"not a UUID in URL-safe base64: {text[:40]!r}") from None
    return uuid


_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
