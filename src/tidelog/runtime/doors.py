"""Listening sockets that can be shut: while nobody listens behind them, whoever comes is refused, as without them.

A socket that is bound and does not listen keeps its port, and the kernel refuses connections to it. Where a system does
not know how to stop listening (only Linux does), a door stays open, and those who come are reset instead.
"""

from __future__ import annotations

import socket

BACKLOG = 128
_TRIES = 20


def open_door(host: str) -> socket.socket:
    """Listen on a free port of the system's choice."""
    for _ in range(_TRIES):
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        door = socket.socket()
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # to listen again beside connections that linger
        try:
            # A port that was asked for by its number is kept while the door is shut; one that was given is not.
            door.bind((host, port))
            door.listen(BACKLOG)
        except OSError:
            door.close()  # somebody else got it in between
            continue
        return door
    raise OSError(f"no free port on {host}")


def shut(door: socket.socket) -> bool:
    """Refuse whoever comes from now on; False where that cannot be done."""
    try:
        door.shutdown(socket.SHUT_RD)
    except OSError:
        return False
    return True


def reopen(door: socket.socket) -> None:
    """Listen again."""
    door.listen(BACKLOG)
