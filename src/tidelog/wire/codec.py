"""Messages to bytes and back. Encoders and decoders are compiled on first use of a class at a version, then kept."""

from __future__ import annotations

from typing import Any, TypeVar

from tidelog.errors import DecodeError
from tidelog.storage import Slice
from tidelog.wire.decoder import Decoder, compile_decoder
from tidelog.wire.encoder import Encoder, compile_encoder
from tidelog.wire.message import Message
from tidelog.wire.varints import Buffer

M = TypeVar("M", bound=Message)

_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], Encoder] = {}


def decoder_of(cls: type[Message], version: int) -> Decoder:
    """The function of (buffer, offset) to (message, offset behind it) of a class at a version."""
    try:
        return _decoders[cls, version]
    except KeyError:
        decoder = _decoders[cls, version] = compile_decoder(cls, version)
        return decoder


def encoder_of(cls: type[Message], version: int) -> Encoder:
    """The function of a message to its chunks of a class at a version; see `join_chunks`."""
    try:
        return _encoders[cls, version]
    except KeyError:
        encoder = _encoders[cls, version] = compile_encoder(cls, version)
        return encoder


def holds_records(cls: type[Message]) -> bool:
    """Whether a message may carry record batches, so that its chunks may be slices of files."""
    for row in cls.FIELDS:
        kind = row[1][0] if isinstance(row[1], tuple) else row[1]
        if kind == "records" or (isinstance(kind, type) and holds_records(kind)):
            return True
    return False


def decode(cls: type[M], version: int, data: Buffer, offset: int = 0) -> tuple[M, int]:
    """The message at an offset and the offset behind it; DecodeError on anything that is not one.

    Records in it are memoryviews of `data`; everything else is copied out.
    """
    return decoder_of(cls, version)(data, offset)


def decode_exact(cls: type[M], version: int, data: Buffer, offset: int = 0) -> M:
    """The message that fills the rest of the data; bytes behind it are a DecodeError."""
    message: M
    message, end = decoder_of(cls, version)(data, offset)
    if end != len(data):
        raise DecodeError(f"{cls.__name__} v{version}: {len(data) - end} bytes too many")
    return message


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message; slices in it are read, so this is not for answers to Fetch."""
    chunks = encoder_of(type(message), version)(message)
    return b"".join([chunk.read() if isinstance(chunk, Slice) else chunk for chunk in chunks])


def encode_parts(message: Message, version: int) -> list[bytes | Slice]:
    """The same with slices kept, and the bytes between them joined."""
    return join_chunks(encoder_of(type(message), version)(message))


def join_chunks(chunks: list[Any]) -> list[bytes | Slice]:
    """Bytes-like neighbours as one `bytes`, slices where they stand."""
    parts: list[bytes | Slice] = []
    start = 0
    for index, chunk in enumerate(chunks):
        if isinstance(chunk, Slice):
            if index > start:
                parts.append(b"".join(chunks[start:index]))
            parts.append(chunk)
            start = index + 1
    if start < len(chunks):
        parts.append(b"".join(chunks[start:]) if start else b"".join(chunks))
    return parts
