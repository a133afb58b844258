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
    """Ports nobody listens on now, all different."""
    chooser = random.SystemRandom()
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = chooser.randint(LOWEST, HIGHEST)
            try:
                if port in _given and len(_given) < (HIGHEST - LOWEST) // 2:
                    raise OSError(f"port {port} was given before")
                candidate.bind(("127.0.0.1", port))
            except OSError:
                candidate.close()
            else:
                held.append(candidate)
        found = [each.getsockname()[1] for each in held]
        _given.update(found)
        return found
    finally:
        for each in held:
            each.close()
