"""Host names into addresses without holding up the loop: numbers at once, names on a thread for each question."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any

Address = tuple[int, Any]
"""Family and address, as `socket` wants them."""
Resolved = Callable[[list[Address], str], None]
"""Called with the addresses of a name, best first, or with none and why there is none."""


def told_host(host: str) -> str:
    """What others are told of a listener: where it is every interface this machine's name, as in Kafka, unless that
    leads nowhere.
    """
    if host not in ("", "0.0.0.0", "::"):  # noqa: S104 - nothing is opened here
        return host
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name.encode("ascii"), None)
    except (OSError, UnicodeError):
        return "localhost"
    return name


class Resolver:
    """Answers on the loop's thread, from `collect`, or at once."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._found: deque[tuple[Resolved, list[Address], str]] = deque()

    def resolve(self, host: str, port: int, then: Resolved) -> None:
        """Find the addresses and call back, perhaps before this returns."""
        try:
            found = _look_up(host, port, socket.AI_NUMERICHOST)
        except OSError:
            Thread(target=self._ask, args=(host, port, then), name=f"resolve {host}", daemon=True).start()
            return
        then(found, "")

    def collect(self) -> None:
        """Hand out what was found; called on the loop's thread."""
        while self._found:
            then, addresses, reason = self._found.popleft()
            then(addresses, reason)

    def _ask(self, host: str, port: int, then: Resolved) -> None:
        try:
            self._found.append((then, _look_up(host, port, 0), ""))
        except (OSError, UnicodeError) as error:
            self._found.append((then, [], f"{host} has no address: {getattr(error, 'strerror', None) or error}"))
        self._wake()


def _look_up(host: str, port: int, flags: int) -> list[Address]:
    # Bytes, because the codec for international names is slow to import.
    name: str | bytes = host.encode("ascii") if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]
