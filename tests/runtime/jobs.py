"""Jobs for the tests of the worker: each is a function at the top of a module that a helper process can import."""

from __future__ import annotations

import os
import signal
import time

from tidelog.storage import Storage


def copy_upper(storage: Storage, source: str, target: str) -> int:
    """Read a closed file, write a new one."""
    data = storage.read_file(source).upper()
    storage.replace(target, data)
    return len(data)


def process_id(storage: Storage) -> int:
    return os.getpid()


def fail(storage: Storage) -> None:
    raise ValueError("on purpose")


def die(storage: Storage) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def big(storage: Storage, size: int) -> bytes:
    return b"x" * size


def wait_for_file(storage: Storage, name: str) -> str:
    """Say who runs it, then wait until the file is there."""
    storage.replace(f"{name}.pid", str(os.getpid()).encode())
    while not storage.exists(name):
        time.sleep(0.005)
    return name
