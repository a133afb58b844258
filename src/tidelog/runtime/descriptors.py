"""A bound on open file descriptors: thousands of partitions have more files than a process may hold open.

Every stored file may lose its descriptor between two uses and gets it back by its path. The one given up is one that
was not used since the last look (second chance), so files that are appended to all the time keep theirs. Files whose
name is gone, and files a flush is working on, never lose theirs.
"""

from __future__ import annotations

import errno
import os
import resource
from collections import OrderedDict
from typing import Protocol

HARD_MAX_DESCRIPTORS = 65_536
"""The most a process asks of the system, whatever the system would allow."""


_TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})


class Holder(Protocol):
    """Something that holds a descriptor and can get it back."""

    fd: int
    """-1 while it has none."""
    recently_used: bool
    pins: int
    """Above 0 the descriptor must stay: a helper thread uses it, or the file has no name to open it by."""


class Descriptors:
    """The open descriptors of stored files, at most `limit` unless more than that are pinned. One thread only."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def open(self, holder: Holder, path: str, flags: int) -> int:
        """Open a file for a holder, closing another's descriptor where that is needed."""
        if len(self._held) >= self.limit:
            self._give_up(1)
        try:
            fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno not in _TOO_MANY or not self._give_up(max(1, len(self._held) // 2)):
                raise
            fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        holder.fd = fd
        holder.recently_used = False
        self._held[holder] = None
        return fd

    def close(self, holder: Holder) -> None:
        """Close a holder's descriptor, if it has one."""
        self._held.pop(holder, None)
        fd, holder.fd = holder.fd, -1
        if fd >= 0:
            os.close(fd)

    def _give_up(self, count: int) -> int:
        given_up = 0
        for _ in range(2 * len(self._held)):
            if given_up >= count:
                break
            holder, _ = self._held.popitem(last=False)
            if holder.pins or holder.recently_used:
                holder.recently_used = False
                self._held[holder] = None
            else:
                self.close(holder)
                given_up += 1
        return given_up


def raise_descriptor_limit() -> int:
    """Ask the system for as many descriptors as it allows, and say how many this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HARD_MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, HARD_MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return HARD_MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
