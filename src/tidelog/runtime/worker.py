"""Work effects in a helper process: one, started for the first job and ended when there has been none for a while.

A job that ends the helper (killed, out of memory) is answered with an error and not tried again; those behind it run in
a new helper. Job and arguments travel by pickle, so a job is a function at the top of a module.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tidelog.effects import Work
from tidelog.outbox import Timer
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.loop import READ, WRITE, Loop
from tidelog.runtime.receiving import ReceiveMemory, Receiver
from tidelog.runtime.sending import Sender

WorkFinished = Callable[[int, Any, str | None], None]
"""Called with the token, the result and the error, one of which is None."""
MAX_QUEUED_JOBS = 10_000
MAX_RESULT_BYTES = 1 << 30
IDLE_MS = 10_000
"""A helper that has had nothing to do for so long is ended: its memory counts as the node's."""


class Worker:
    """Carries out Work effects one after the other."""

    def __init__(
        self, loop: Loop, finished: WorkFinished, *, max_queued: int = MAX_QUEUED_JOBS, idle_ms: int = IDLE_MS
    ) -> None:
        self._loop = loop
        self._finished = finished
        self._max_queued = max_queued
        self._idle_ms = idle_ms
        self._queue: deque[tuple[int, bytes]] = deque()
        """Token and pickled job, not given to the helper yet."""
        self._running_token: int | None = None
        self._memory = ReceiveMemory()
        self._socket: socket.socket | None = None
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        self._interest = 0
        self.pid: int | None = None
        """Of the helper, while there is one."""
        self._idle_timer: Timer | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job runs or waits."""
        return self._running_token is not None or bool(self._queue)

    def submit(self, effect: Work) -> None:
        """Take a job in; `finished` is called exactly once for it, in a later turn."""
        if not isinstance(effect.storage, DirectoryStorage):
            raise TypeError(f"{effect.storage!r} is not a directory of this node")
        if len(self._queue) >= self._max_queued:
            self._fail_later(effect.token, f"{self._max_queued} jobs are waiting already")
            return
        import pickle  # with the first job, not with the node

        try:
            message = pickle.dumps(
                (effect.token, effect.storage.root, effect.job, effect.arguments), pickle.HIGHEST_PROTOCOL
            )
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            self._fail_later(effect.token, f"the job cannot be sent to a helper: {error}")
            return
        self._queue.append((effect.token, message))
        self._next()

    def stop(self) -> None:
        """End the helper; jobs that did not finish are not reported."""
        self._queue.clear()
        self._running_token = None
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._end_helper()

    # --- one job after the other ---

    def _next(self) -> None:
        if self._running_token is not None or not self._queue:
            return
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._sender is None:
            try:
                self._start_helper()
            except OSError as error:
                token, _ = self._queue.popleft()
                self._fail_later(token, f"no helper process: {error.strerror}")
                self._loop.again(self._next)
                return
        assert self._sender is not None
        self._running_token, message = self._queue.popleft()
        self._sender.add((len(message).to_bytes(4, "big"), message))
        self._send()

    def _done(self, token: int, result: Any, error: str | None) -> None:
        self._running_token = None
        self._finished(token, result, error)
        self._next()
        if self._running_token is None and self._socket is not None:
            self._idle_timer = self._loop.after(self._idle_ms, self._end_if_idle)

    def _fail_later(self, token: int, error: str) -> None:
        self._loop.again(lambda: self._finished(token, None, error))

    def _end_if_idle(self) -> None:
        if not self.is_busy:
            self._end_helper()

    # --- the helper ---

    def _start_helper(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            os.set_inheritable(theirs.fileno(), True)
            program = f"from tidelog.runtime.helper import main; main({theirs.fileno()})"
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self.pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], environment)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._receiver = Receiver(self._memory, MAX_RESULT_BYTES)
        self._sender = Sender(ours)
        self._watch(READ)

    def _end_helper(self) -> str:
        """Let go of the helper, and say how it ended."""
        if self._socket is None or self.pid is None:
            return ""
        self._loop.unwatch(self._socket.fileno())
        self._socket.close()
        if self._receiver is not None:
            self._receiver.close()
        self._socket = self._receiver = self._sender = None
        self._interest = 0
        pid, self.pid = self.pid, None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            return "ended"
        if os.WIFSIGNALED(status):
            return f"was killed by signal {os.WTERMSIG(status)}"
        return f"ended with exit code {os.WEXITSTATUS(status)}"

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._send()
        if events & READ and self._socket is not None:
            self._read(self._socket)

    def _send(self) -> None:
        assert self._sender is not None
        try:
            done = self._sender.send()
        except OSError:
            self._lost()
            return
        self._watch(READ if done else READ | WRITE)

    def _read(self, source: socket.socket) -> None:
        receiver = self._receiver
        assert receiver is not None
        try:
            count = receiver.receive(source)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._lost()
            return
        frame = receiver.next_frame()
        if frame is None:
            receiver.settle()
            return
        import pickle

        token, result, error = pickle.loads(frame)  # noqa: S301 - from the process this one started
        receiver.settle()
        self._done(token, result, error)

    def _lost(self) -> None:
        token = self._running_token
        how = self._end_helper()
        if token is not None:
            self._done(token, None, f"the helper process {how}")

    def _watch(self, interest: int) -> None:
        if self._socket is None or interest == self._interest:
            return
        self._loop.rewatch(self._socket.fileno(), self._interest, interest, self._ready)
        self._interest = interest
