"""The helper process: takes jobs over a socket, runs one at a time, sends results back, and ends when its node does.

It is a fresh interpreter with nothing of the node in it but the modules of the jobs it was given.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

NICENESS = 5
"""Jobs are not urgent; answering clients is."""


def main(fd: int) -> None:
    """Serve jobs from this descriptor until it is closed on the other side."""
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C goes to all; this process ends with its node
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    channel = socket.socket(fileno=fd)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_jobs, args=(channel, jobs), daemon=True).start()
    while True:
        result = pickle.dumps(_run(jobs.get()), pickle.HIGHEST_PROTOCOL)
        channel.sendall(len(result).to_bytes(4, "big") + result)


def _read_jobs(channel: socket.socket, jobs: SimpleQueue[bytes]) -> None:
    """A thread of its own, so that the end of the node is noticed in the middle of a job."""
    try:
        while True:
            size = int.from_bytes(_read_exactly(channel, 4), "big")
            jobs.put(_read_exactly(channel, size))
    except (EOFError, OSError):
        os._exit(0)


def _read_exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = channel.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _run(message: bytes) -> tuple[int, Any, str | None]:
    """Token, result and error of one job."""
    from tidelog.runtime.files import DirectoryStorage  # after the first job is here, not before

    token, root, job, arguments = pickle.loads(message)  # noqa: S301 - from the node that started this process
    storage = DirectoryStorage(root)
    try:
        return token, job(storage, *arguments), None
    except Exception as error:
        return token, None, f"{type(error).__name__}: {error}"
    finally:
        storage.close()
