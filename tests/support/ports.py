"""Free TCP ports on the loopback address."""

from __future__ import annotations

import random
import socket

LOWEST, HIGHEST = 10_050, 19_950
"""Below the range the kernel draws the ports of outgoing connections from, so no client takes one in between, and below
those that `tidelog.verify.cluster` draws, so no cluster does."""
_held: list[socket.socket] = []
"""One bound to each port that this process was given: the node to listen there may not do so yet, or not again yet."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on and nobody was given, all different, and other ones than before."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST):
        if len(found) == count:
            break
        if _hold(port):
            found.append(port)
    assert len(found) == count, f"no {count} free ports"
    return found


def _hold(port: int) -> bool:
    """Have a port for whoever listens with SO_REUSEADDR, as nodes do, and for nobody who looks for one as we do here.

    Binding without that option is refused while anybody has the port, listening or not, in this process or another.
    """
    holder = socket.socket()
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return False
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _held.append(holder)
    return True
