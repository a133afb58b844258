"""Waits for descriptors: epoll itself where there is one, and what `selectors` offers elsewhere.

A loop turns tens of thousands of times a second and nearly always finds one descriptor ready; the general selector
spends as much on that turn as the system call does.
"""

from __future__ import annotations

import select
import selectors
import sys
from collections.abc import Callable
from typing import Protocol

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
Ready = Callable[[int], None]
"""Called with READ, WRITE or both."""


class Poller(Protocol):
    """Who is to be called for which descriptor."""

    def register(self, fd: int, events: int, ready: Ready) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, events: int, ready: Ready) -> None:
        """Watch it for other events."""

    def unregister(self, fd: int) -> None:
        """Watch it no longer. One that was found ready in the same turn is still called."""

    def wait(self, seconds: float) -> list[tuple[Ready, int]]:
        """Wait at most so long; whom to call, with what."""

    def close(self) -> None:
        """Give back what the poller itself holds."""


def best_poller() -> Poller:
    """The fastest that this system has."""
    return EpollPoller() if sys.platform == "linux" else SelectorPoller()


class SelectorPoller:
    """By the standard library's choice."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int, ready: Ready) -> None:
        """Watch a descriptor."""
        self._selector.register(fd, events, ready)

    def modify(self, fd: int, events: int, ready: Ready) -> None:
        """Watch it for other events."""
        self._selector.modify(fd, events, ready)

    def unregister(self, fd: int) -> None:
        """Watch it no longer."""
        self._selector.unregister(fd)

    def wait(self, seconds: float) -> list[tuple[Ready, int]]:
        """Wait at most so long; whom to call, with what."""
        return [(key.data, events) for key, events in self._selector.select(seconds)]

    def close(self) -> None:
        """Give back what the poller itself holds."""
        self._selector.close()


if sys.platform == "linux":
    _EPOLL_EVENTS = {READ: select.EPOLLIN, WRITE: select.EPOLLOUT, READ | WRITE: select.EPOLLIN | select.EPOLLOUT}
    _READABLE = int(select.EPOLLIN)
    _NOT_READ = ~select.EPOLLIN
    _NOT_WRITE = ~select.EPOLLOUT

    class EpollPoller:
        """Linux's own."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self._ready: dict[int, Ready] = {}

        def register(self, fd: int, events: int, ready: Ready) -> None:
            """Watch a descriptor."""
            self._epoll.register(fd, _EPOLL_EVENTS[events])
            self._ready[fd] = ready

        def modify(self, fd: int, events: int, ready: Ready) -> None:
            """Watch it for other events."""
            self._epoll.modify(fd, _EPOLL_EVENTS[events])
            self._ready[fd] = ready

        def unregister(self, fd: int) -> None:
            """Watch it no longer."""
            del self._ready[fd]
            self._epoll.unregister(fd)

        def wait(self, seconds: float) -> list[tuple[Ready, int]]:
            """Wait at most so long; whom to call, with what. An error or the end of a stream is both READ and WRITE."""
            found = self._epoll.poll(seconds)
            if len(found) == 1 and found[0][1] == _READABLE:
                return [(self._ready[found[0][0]], READ)]
            return [
                (self._ready[fd], (WRITE if events & _NOT_READ else 0) | (READ if events & _NOT_WRITE else 0))
                for fd, events in found
            ]

        def close(self) -> None:
            """Give back what the poller itself holds."""
            self._epoll.close()
