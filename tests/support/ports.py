"""Free TCP ports on the loopback address."""

from __future__ import annotations

import random
import socket

LOWEST, HIGHEST = 10_050, 19_950
"""Below the range the kernel draws the ports of outgoing connections from, so no client takes one in between, and below
those that `tidelog.verify.cluster` draws, so no cluster does."""
_given: set[int] = set()
"""What this process was given before: somebody may not listen there yet, or not again yet."""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different, and other ones than before."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            found.append(port)
    assert len(found) == count, f"no {count} free ports"
    _given.update(found)
    return found


def _is_free(port: int) -> bool:
    """Two sockets may hold one port with this option while nobody listens: it says nothing of ports held by us."""
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
