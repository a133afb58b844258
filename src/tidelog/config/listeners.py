"""Addresses in settings: listeners (NAME://host:port), voters (id@host:port) and plain host:port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.errors import ConfigError

MAX_PORT = 65_535


class Listener(NamedTuple):
    """One address with its name. An empty host is every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"


class Voter(NamedTuple):
    """A voter of the quorum and where it is reached."""

    node_id: int
    host: str
    port: int


def parse_listeners(setting: str, entries: Iterable[str]) -> tuple[Listener, ...]:
    """The addresses of a setting such as listeners; names must differ, and so must ports other than 0."""
    found: dict[str, Listener] = {}
    ports: set[tuple[str, int]] = set()
    for entry in entries:
        name, separator, address = entry.partition("://")
        if not separator or not name or not all(letter.isalnum() or letter in "_-" for letter in name):
            raise ConfigError(f"{setting}: {entry!r} is not NAME://host:port")
        listener = Listener(name.upper(), *_parse_address(setting, entry, address, empty_host=True))
        if listener.name in found:
            raise ConfigError(f"{setting}: the name {listener.name} is used twice")
        if listener.port and (listener.host, listener.port) in ports:
            raise ConfigError(f"{setting}: port {listener.port} is used twice")
        found[listener.name] = listener
        ports.add((listener.host, listener.port))
    return tuple(found.values())


def parse_voters(setting: str, entries: Iterable[str]) -> tuple[Voter, ...]:
    """The voters of controller.quorum.voters; ids must differ."""
    found: dict[int, Voter] = {}
    for entry in entries:
        node_id, separator, address = entry.partition("@")
        if not separator or not node_id.isdecimal():
            raise ConfigError(f"{setting}: {entry!r} is not id@host:port")
        voter = Voter(int(node_id), *_parse_address(setting, entry, address))
        if voter.node_id in found:
            raise ConfigError(f"{setting}: voter {voter.node_id} is named twice")
        found[voter.node_id] = voter
    return tuple(found.values())


def parse_addresses(setting: str, entries: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Plain host:port entries."""
    return tuple(_parse_address(setting, entry, entry) for entry in entries)


def parse_address_overrides(setting: str, entries: Iterable[str]) -> dict[tuple[str, int], tuple[str, int]]:
    """Entries host:port=host:port: what nodes advertise, and where to connect instead."""
    found: dict[tuple[str, int], tuple[str, int]] = {}
    for entry in entries:
        advertised, separator, instead = entry.partition("=")
        if not separator:
            raise ConfigError(f"{setting}: {entry!r} is not host:port=host:port")
        found[_parse_address(setting, entry, advertised)] = _parse_address(setting, entry, instead)
    return found


def _parse_address(setting: str, entry: str, address: str, *, empty_host: bool = False) -> tuple[str, int]:
    host, separator, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"{setting}: {entry!r}: an IPv6 address is written in brackets")
    if not separator or not (port.isascii() and port.isdecimal()) or not (host or empty_host):
        raise ConfigError(f"{setting}: {entry!r} has no {'port' if host or empty_host else 'host'}")
    if int(port) > MAX_PORT:
        raise ConfigError(f"{setting}: {entry!r}: a port is 0 to {MAX_PORT}")
    return host, int(port)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
