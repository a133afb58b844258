"""Network namespaces as hosts: each node has an address, a cable and a kernel's own network of its own.

switch  a namespace with a bridge; every host's cable ends there
hosts   10.77.0.1, 10.77.0.2, …; the last one is for clients
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from types import TracebackType
from typing import Self

NETWORK = "10.77.0"


class NotPossible(Exception):
    """The kernel or our rights do not allow it; the text says what."""


def run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """One command; NotPossible with its complaint when it fails."""
    ended = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    if check and ended.returncode:
        raise NotPossible(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended


class Hosts:
    """Namespaces joined by a switch; all are gone after the block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._prefix = f"tl{os.getpid()}"
        self._made: list[str] = []

    def __enter__(self) -> Self:
        if shutil.which("ip") is None:
            raise NotPossible("there is no ip command (iproute2)")
        try:
            switch = self._add("sw")
            run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
            run("ip", "-n", switch, "link", "set", "br0", "up")
            for number in range(1, self.count + 1):
                host = self._add(str(number))
                cable = ("type", "veth", "peer", "name", "eth0", "netns", host)
                run("ip", "-n", switch, "link", "add", f"port{number}", *cable)
                run("ip", "-n", switch, "link", "set", f"port{number}", "master", "br0", "up")
                run("ip", "-n", host, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
                run("ip", "-n", host, "link", "set", "eth0", "up")
                run("ip", "-n", host, "link", "set", "lo", "up")
        except NotPossible:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove every namespace that was made, with all that is in it."""
        for name in reversed(self._made):
            run("ip", "netns", "delete", name, check=False)
        self._made.clear()

    def _add(self, name: str) -> str:
        run("ip", "netns", "add", f"{self._prefix}{name}")
        self._made.append(f"{self._prefix}{name}")
        return self._made[-1]

    def address(self, number: int) -> str:
        """Where a host is reached."""
        return f"{NETWORK}.{number}"

    def command(self, number: int, *words: str) -> list[str]:
        """What runs a command on a host; the process is the command's own."""
        return ["ip", "netns", "exec", f"{self._prefix}{number}", *words]

    def plug(self, number: int, connected: bool) -> None:
        """Pull a host's cable out of the switch, or put it back: packets vanish, connections stay open."""
        run("ip", "-n", f"{self._prefix}sw", "link", "set", f"port{number}", "up" if connected else "down")

    def disturb(self, number: int) -> str:
        """Loss and delay on all that a host sends; returns by what means, empty when the kernel has none."""
        for means in (("netem", "delay", "20ms", "10ms", "loss", "3%"), TOKEN_BUCKET):
            with suppress(NotPossible):
                run(*self.command(number, "tc", "qdisc", "add", "dev", "eth0", "root", *means))
                return means[0]
        return ""

    def leave_alone(self, number: int) -> None:
        """End the disturbance."""
        run(*self.command(number, "tc", "qdisc", "delete", "dev", "eth0", "root"), check=False)


TOKEN_BUCKET = ("tbf", "rate", "4mbit", "burst", "8kb", "latency", "30ms")
"""Without netem: a thin cable, on which packets queue for up to 30 ms and are then dropped."""
