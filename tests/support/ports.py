"""Free TCP ports on the loopback address."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

LOWEST, HIGHEST = 10_050, 19_950
"""Below the range the kernel draws the ports of outgoing connections from, so no client takes one in between, and below
those that `tidelog.verify.cluster` draws, so no cluster does."""
_promises = (Path(tempfile.gettempdir()) / f"tidelog-test-ports-{os.getuid()}").open("a")
"""A byte for each port, locked by the process that the port was given to, until that ends, however it does: who is to
listen there may not do so yet, or not again yet, while another test process looks for ports."""
_given: set[int] = set()
"""What this process was given before: its own locks are no obstacle to it."""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now and nobody was given, all different, and other ones than before."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST):
        if len(found) == count:
            break
        if port not in _given and _is_free(port) and _take(port):
            found.append(port)
    assert len(found) == count, f"no {count} free ports"
    return found


def _take(port: int) -> bool:
    """Promise a port to this process, unless it is another's."""
    try:
        fcntl.lockf(_promises, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):  # systems differ in how they say that it is locked
        return False
    _given.add(port)
    return True


def _is_free(port: int) -> bool:
    """Two sockets may hold one port with this option while nobody listens: it says nothing of ports held by us."""
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
