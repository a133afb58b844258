"""What is known of each API: its number, its versions, its classes and which header goes before them.

Message modules are imported when a class is first asked for: importing them all would cost a tenth of a second.
"""

from __future__ import annotations

from importlib import import_module

from tidelog.wire.api_table import API_TABLE as KAFKA_TABLE
from tidelog.wire.api_table import ApiKey
from tidelog.wire.message import Message

__all__ = [
    "PRIVATE_QUERY",
    "ApiKey",
    "api_listeners",
    "api_name",
    "api_versions",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
]

PRIVATE_QUERY = 30_000
"""The one request that is not Kafka's: what its protocol has no words for. Never advertised."""

API_TABLE = {**KAFKA_TABLE, PRIVATE_QUERY: ("TidelogQuery", "private_query", 0, 0, 0, 0, ("broker", "controller"))}

_classes: dict[int, tuple[type[Message], type[Message]]] = {}


def api_name(api_key: int) -> str:
    """Kafka's name of an API, or a number for one that is not known."""
    row = API_TABLE.get(api_key)
    return row[0] if row else f"api {api_key}"


def api_versions(api_key: int) -> tuple[int, int]:
    """First and last stable version that Kafka has, whether or not this node implements it."""
    row = API_TABLE[api_key]
    return row[2], row[3]


def api_listeners(api_key: int) -> tuple[str, ...]:
    """Where Kafka serves an API: "broker", "controller" or both."""
    return API_TABLE[api_key][6]


def request_class(api_key: int) -> type[Message]:
    """The request's class; KeyError for an unknown API."""
    return _classes_of(api_key)[0]


def response_class(api_key: int) -> type[Message]:
    """The response's class; KeyError for an unknown API."""
    return _classes_of(api_key)[1]


def request_header_version(api_key: int, api_version: int) -> int:
    """2 where the request is flexible, else 1."""
    return 2 if api_version >= API_TABLE[api_key][4] else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """1 where the response is flexible, else 0.

    ApiVersions always has 0, so that a client can read the answer to a version the broker does not know (KIP-511).
    """
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= API_TABLE[api_key][5] else 0


def _classes_of(api_key: int) -> tuple[type[Message], type[Message]]:
    classes = _classes.get(api_key)
    if classes is None:
        name, module_name = API_TABLE[api_key][:2]
        room = "tidelog.wire" if api_key == PRIVATE_QUERY else "tidelog.wire.messages"
        module = import_module(f"{room}.{module_name}")
        classes = _classes[api_key] = (getattr(module, name + "Request"), getattr(module, name + "Response"))
    return classes
